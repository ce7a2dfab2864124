//! Any bytes as one of the files of a job, or as a request to its supervisor.

use outlive::control::Request;
use outlive::environment::{decode_env, encode_env};
use outlive::job::Outcome;
use outlive::store::{Sidecar, encode_launch, parse_launch};

pub(crate) fn check(raw: &[u8]) {
    let sidecar = Sidecar::parse(raw);
    // While the supervisor lives, only what it has ended with a newline counts.
    assert!(sidecar.clone().counting(true).is_none() || raw.ends_with(b"\n"));
    if let Some(outcome) = sidecar.outcome {
        let text = serde_json::to_vec(&outcome).unwrap();
        assert_eq!(serde_json::from_slice::<Outcome>(&text).unwrap(), outcome);
        let half = &text[..raw.len() % text.len()];
        assert_eq!(Sidecar::parse(half).outcome, None, "half an end is none");
    }
    if let Some(launch) = parse_launch(raw) {
        assert_eq!(parse_launch(&encode_launch(&launch).unwrap()), Some(launch));
    }
    if let Some(env) = decode_env(raw) {
        let mut text = encode_env(&env).join(&0);
        text.extend([0, 0]);
        assert_eq!(decode_env(&text), Some(env));
    }
    if let Ok(line) = std::str::from_utf8(raw)
        && let Some(request) = Request::decode(line, 1)
    {
        assert_eq!(Request::decode(&request.encode(1), 1), Some(request));
        assert_eq!(Request::decode(&request.encode(1), 2), None);
    }
}
