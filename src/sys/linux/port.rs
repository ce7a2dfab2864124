//! Who listens on a port, see proc_net_tcp(5).

/// The sockets that listen on a TCP port of this machine.
#[derive(Debug)]
pub struct Listeners(Vec<String>);

impl Listeners {
    pub fn on(port: u16) -> Self {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let tables = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
        Self(tables.flat_map(|table| listeners(&table, port)).collect())
    }

    pub fn none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a process has one of them open.
    pub fn held_by(&self, pid: i32) -> bool {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let target = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
        entries.flatten().filter_map(target).any(|link| {
            let link = link.to_string_lossy();
            self.0.iter().any(|inode| link == format!("socket:[{inode}]"))
        })
    }
}

/// The inodes of the sockets that listen (state 0A) on a port.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let ends = format!(":{port:04X}");
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let fits = words.get(1)?.ends_with(&ends) && *words.get(3)? == "0A";
        fits.then(|| words.get(9).map(|word| (*word).to_owned()))?
    };
    table.lines().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 x\n\
             1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1 x\n\
             2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 x\n";
        assert_eq!(listeners(table, 8080), ["111"]);
        assert_eq!(listeners(table, 80), Vec::<String>::new());
    }
}
