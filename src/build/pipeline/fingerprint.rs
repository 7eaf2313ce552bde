//! Fingerprints: everything that determines the content of an artifact, and so whether it is up to date.
//!
//! A fingerprint belongs to the artifact, not to the stage that made it. It holds the kind of content, the
//! version of the algorithm, the parameters that change the content, and the content digests of the artifacts
//! that it derives from; intermediates are replaced by their own sources. Method, codec, threads, memory and
//! paths are absent, so none of them makes anything stale.

use crate::artifact::{ArtifactName, ArtifactSpec};
use disk::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The fingerprint of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// [`ArtifactSpec::content`].
    pub content: String,
    /// [`ArtifactSpec::version`].
    pub version: u32,
    /// [`ArtifactSpec::identity`].
    pub identity: BTreeMap<String, String>,
    /// The content digest of each source.
    pub inputs: BTreeMap<ArtifactName, Digest>,
}

/// A field in which two fingerprints differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldDifference {
    pub(crate) field: String,
    pub(crate) was: String,
    pub(crate) is: String,
}

impl Fingerprint {
    /// Makes the fingerprint of a declared artifact, made from inputs with these digests.
    pub fn new(artifact: &ArtifactSpec, inputs: BTreeMap<ArtifactName, Digest>) -> Self {
        Fingerprint {
            content: artifact.content.clone(),
            version: artifact.version,
            identity: artifact.identity.clone(),
            inputs,
        }
    }

    /// Returns a digest of all fields.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::new();
        // Lengths first, so that no two fingerprints share an encoding.
        let mut put = |text: &str| {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        put(&self.content);
        put(&self.version.to_string());
        put(&self.identity.len().to_string());
        for (key, value) in &self.identity {
            put(key);
            put(value);
        }
        for (name, digest) in &self.inputs {
            put(name.as_str());
            put(&digest.to_string());
        }
        Digest::of(&bytes)
    }

    /// Returns the first field, inputs excluded, in which the recorded fingerprint (`self`) differs from the
    /// declaration.
    pub(crate) fn outdated(&self, artifact: &ArtifactSpec) -> Option<FieldDifference> {
        let differ = |field: &str, was: &str, is: &str| {
            Some(FieldDifference { field: field.to_owned(), was: was.to_owned(), is: is.to_owned() })
        };
        if self.content != artifact.content {
            return differ("content", &self.content, &artifact.content);
        }
        if self.version != artifact.version {
            let (was, is) = (self.version.to_string(), artifact.version.to_string());
            return differ("version", &was, &is);
        }
        for (key, is) in &artifact.identity {
            match self.identity.get(key) {
                None => return differ(key, "not set", is),
                Some(was) if !artifact.is_satisfied(key, was) => return differ(key, was, is),
                Some(_) => {}
            }
        }
        let gone = |key: &&String| !artifact.identity.contains_key(*key);
        let key = self.identity.keys().find(gone)?;
        differ(key, &self.identity[key], "not set")
    }
}

/// Returns the start of a digest, for messages.
pub(crate) fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactKind;

    fn artifact() -> ArtifactSpec {
        let name = ArtifactName::new("databases/2").unwrap();
        ArtifactSpec::new(name, ArtifactKind::Target, "database")
            .identity("rules", "toy")
            .identity("how", "sample")
            .accept("how", "full")
    }

    #[test]
    fn digest_depends_on_every_field() {
        let inputs =
            |text: &str| BTreeMap::from([(ArtifactName::new("databases/1").unwrap(), Digest::of(text.as_bytes()))]);
        let base = Fingerprint::new(&artifact(), inputs("a"));
        let others = [
            Fingerprint::new(&artifact(), inputs("b")),
            Fingerprint::new(&artifact(), BTreeMap::new()),
            Fingerprint::new(&artifact().version(2), inputs("a")),
            Fingerprint::new(&artifact().identity("rules", "oware"), inputs("a")),
            Fingerprint::new(&artifact().identity("more", "x"), inputs("a")),
        ];
        for other in &others {
            assert_ne!(base.digest(), other.digest());
        }
        assert_eq!(base.digest(), base.clone().digest());
        let text = serde_json::to_string(&base).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), base);
    }

    #[test]
    fn outdated_names_the_field() {
        let was = Fingerprint::new(&artifact().identity("how", "full"), BTreeMap::new());
        assert_eq!(was.outdated(&artifact()), None, "full does where a sample is asked for");
        let was = Fingerprint::new(&artifact(), BTreeMap::new());
        let check = |wanted: ArtifactSpec, field: &str, old: &str, new: &str| {
            let difference = was.outdated(&wanted).unwrap();
            let found = (&*difference.field, &*difference.was, &*difference.is);
            assert_eq!(found, (field, old, new));
        };
        check(artifact().version(2), "version", "1", "2");
        check(artifact().identity("how", "full"), "how", "sample", "full");
        check(artifact().identity("set", "all"), "set", "not set", "all");
        let mut fewer = artifact();
        fewer.identity.remove("rules");
        check(fewer, "rules", "toy", "not set");
    }
}
