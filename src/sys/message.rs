//! Descriptors that come with bytes, see SCM_RIGHTS in unix(7).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use super::{CLOSE_RECEIVED, close_received};

/// How many descriptors one message may bring.
const MOST: usize = 8;

/// Fills `bytes` as far as there is anything, and takes the descriptors that came with it.
pub fn receive(line: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; MOST]);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = CLOSE_RECEIVED | MsgFlags::MSG_WAITALL;
    let message = loop {
        match recvmsg::<()>(line.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    let mut fds = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = part {
            // SAFETY: the kernel has just made these descriptors for this message; nobody else knows their numbers.
            fds.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    fds.iter().try_for_each(close_received)?;
    Ok((message.bytes, fds))
}
