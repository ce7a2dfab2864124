//! Bytes that are mostly text.
//!
//! Arguments, paths and environments are bytes on Unix. In JSON they are a string when they are UTF-8 and
//! `{"hex": "66ff"}` when they are not, so that every value survives a round trip.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// An argument or a path, as the bytes it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn as_os(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os())
    }

    /// For people: anything that is not UTF-8 is replaced.
    pub fn display(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Bytes {
    fn from(value: &T) -> Self {
        Self(value.as_ref().as_bytes().to_vec())
    }
}

impl From<OsString> for Bytes {
    fn from(value: OsString) -> Self {
        Self(value.into_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("hex", &hex)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytesVisitor;

        impl<'de> Visitor<'de> for BytesVisitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a string or {\"hex\": …}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.as_bytes().to_vec()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Bytes, E> {
                Ok(Bytes(text.into_bytes()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bytes, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "hex" {
                        found = Some(
                            unhex(&map.next_value::<String>()?)
                                .ok_or_else(|| de::Error::custom("bad hex"))?,
                        );
                    } else {
                        map.next_value::<de::IgnoredAny>()?;
                    }
                }
                found.map(Bytes).ok_or_else(|| de::Error::missing_field("hex"))
            }
        }

        deserializer.deserialize_any(BytesVisitor)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_a_string_and_the_rest_is_hex() {
        assert_eq!(serde_json::to_string(&Bytes(b"a b".to_vec())).unwrap(), "\"a b\"");
        assert_eq!(serde_json::to_string(&Bytes(b"f\xff".to_vec())).unwrap(), "{\"hex\":\"66ff\"}");
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"6\"}").is_err());
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"+f\"}").is_err());
    }

    proptest! {
        #[test]
        fn every_value_survives_a_round_trip(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = serde_json::to_string(&Bytes(raw.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap(), Bytes(raw));
        }
    }
}
