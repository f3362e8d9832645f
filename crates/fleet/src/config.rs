//! The files of agents and controllers: where the broker is, how to be admitted, and what is permitted. Start reading
//! at [`AgentConfig::read`].

use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::broker::Access;
use crate::ids::Id;
use crate::permit::Permit;

/// `agent.toml`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The broker.
    pub join: Option<String>,
    /// Its name; otherwise the machine's with the process number.
    pub name: Option<Id>,
    /// Folder of the messages that were not collected yet.
    pub spool: Option<PathBuf>,
    /// Public keys of those whose plans are carried out.
    #[serde(default)]
    pub trust: Vec<String>,
    /// Addresses that may be loaded.
    #[serde(default)]
    pub targets: Vec<crate::permit::Target>,
    /// See [`Permit::rate_max`].
    pub rate_max: Option<units::PerSecond>,
    /// See [`Permit::connections_max`].
    pub connections_max: Option<u32>,
    /// See [`Access`].
    pub ca: Option<PathBuf>,
    /// Certificate that is shown to the broker (PEM).
    pub certificate: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
    /// File with the seed of an NKey.
    pub nkey: Option<PathBuf>,
}

/// `controller.toml`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// The broker.
    pub broker: String,
    /// File with the seed of the key that plans are signed with.
    pub sign: Option<PathBuf>,
    /// See [`Access`].
    pub ca: Option<PathBuf>,
    /// Certificate that is shown to the broker (PEM).
    pub certificate: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
    /// File with the seed of an NKey.
    pub nkey: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// As given.
        path: PathBuf,
        /// Mostly that it is not there.
        source: std::io::Error,
    },
    /// Not what it should be.
    #[error("{}: {why}", path.display())]
    Wrong {
        /// As given.
        path: PathBuf,
        /// A sentence.
        why: String,
    },
}

impl AgentConfig {
    /// Reads the file; paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = read_toml(path)?;
        let Self { spool, ca, certificate, key, nkey, .. } = &mut config;
        [spool, ca, certificate, key, nkey].into_iter().for_each(|own| beside(path, own));
        Ok(config)
    }

    /// How the broker is reached.
    ///
    /// # Errors
    /// The file of the NKey cannot be read.
    pub fn access(&self, url: String) -> Result<Access, ConfigError> {
        access(url, &self.ca, (&self.certificate, &self.key), self.nkey.as_deref())
    }

    /// What its owner permits.
    pub fn permit(&self) -> Permit {
        Permit {
            targets: self.targets.clone(),
            rate_max: self.rate_max,
            connections_max: self.connections_max,
        }
    }
}

impl ControllerConfig {
    /// Reads the file, or `controller.toml` of a folder; or makes it of a broker's address.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn find(place: &str) -> Result<Self, ConfigError> {
        if place.contains("://") {
            return Ok(Self { broker: place.to_owned(), ..Self::default() });
        }
        let path = Path::new(place);
        let path = if path.is_dir() { path.join("controller.toml") } else { path.to_owned() };
        let mut config: Self = read_toml(&path)?;
        let Self { sign, ca, certificate, key, nkey, .. } = &mut config;
        [sign, ca, certificate, key, nkey].into_iter().for_each(|own| beside(&path, own));
        Ok(config)
    }

    /// How the broker is reached.
    ///
    /// # Errors
    /// The file of the NKey cannot be read.
    pub fn access(&self) -> Result<Access, ConfigError> {
        let url = self.broker.clone();
        access(url, &self.ca, (&self.certificate, &self.key), self.nkey.as_deref())
    }

    /// The key that plans are signed with.
    ///
    /// # Errors
    /// Its file cannot be read, or holds none.
    pub fn signing_key(&self) -> Result<Option<KeyPair>, ConfigError> {
        let Some(path) = &self.sign else { return Ok(None) };
        let key = KeyPair::from_seed(&seed(path)?);
        let wrong = |error: nkeys::error::Error| ConfigError::Wrong {
            path: path.clone(),
            why: error.to_string(),
        };
        key.map(Some).map_err(wrong)
    }
}

fn access(
    url: String,
    ca: &Option<PathBuf>,
    (certificate, key): (&Option<PathBuf>, &Option<PathBuf>),
    nkey: Option<&Path>,
) -> Result<Access, ConfigError> {
    let certificate = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        (Some(alone), None) | (None, Some(alone)) => {
            let why = "`certificate` and `key` are needed together".to_owned();
            return Err(ConfigError::Wrong { path: alone.clone(), why });
        }
    };
    // An agent tries again until the broker admits it. With a file that is not there it never would.
    let files =
        ca.iter().chain(certificate.iter().flat_map(|(certificate, key)| [certificate, key]));
    for path in files {
        std::fs::File::open(path)
            .map_err(|source| ConfigError::Read { path: path.clone(), source })?;
    }
    Ok(Access { url, ca: ca.clone(), certificate, nkey: nkey.map(seed).transpose()? })
}

fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text)
        .map_err(|error| ConfigError::Wrong { path: path.to_owned(), why: error.to_string() })
}

/// Makes a path relative to the file that has it.
fn beside(file: &Path, own: &mut Option<PathBuf>) {
    if let (Some(own), Some(folder)) = (own.as_mut(), file.parent()) {
        *own = folder.join(&*own);
    }
}

/// The seed in a file: its first line that is not a comment.
fn seed(path: &Path) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let line = text.lines().map(str::trim).find(|line| line.starts_with('S'));
    line.map(str::to_owned).ok_or_else(|| ConfigError::Wrong {
        path: path.to_owned(),
        why: "it has no line with the seed of a key, which begins with S".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_their_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        std::fs::write(
            &path,
            "join = \"nats://h\"\ntargets = [\"10.0.0.0/8:80\"]\nnkey = \"a.nk\"\nrate_max = 500\n",
        )
        .unwrap();
        let config = AgentConfig::read(&path).unwrap();
        assert_eq!(config.permit().rate_max, Some(units::PerSecond(500.0)));
        assert_eq!(config.nkey, Some(folder.path().join("a.nk")));
        assert!(matches!(config.access("nats://h".to_owned()), Err(ConfigError::Read { .. })));
        for (text, said) in [
            ("certificate = \"c.pem\"", "c.pem: `certificate` and `key` are needed together"),
            ("certificate = \"c.pem\"\nkey = \"k.pem\"", "cannot read"),
            ("ca = \"/no/ca.pem\"", "cannot read /no/ca.pem"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = AgentConfig::read(&path).unwrap().access("nats://h".to_owned());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        for (text, said) in
            [("target = []", "target"), ("targets = [\"10.0.0.0/99\"]", "is not a target")]
        {
            std::fs::write(&path, text).unwrap();
            let error = AgentConfig::read(&path).unwrap_err().to_string();
            assert!(error.contains("agent.toml") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_controller_is_a_url_a_file_or_a_folder() {
        let plain = ControllerConfig::find("nats://127.0.0.1:4222").unwrap();
        assert_eq!(plain.access().unwrap().url, "nats://127.0.0.1:4222");
        assert!(plain.signing_key().unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::new_user();
        std::fs::write(folder.path().join("sign.nk"), key.seed().unwrap()).unwrap();
        let text = "broker = \"tls://h:4222\"\nsign = \"sign.nk\"\n";
        std::fs::write(folder.path().join("controller.toml"), text).unwrap();
        let found = ControllerConfig::find(folder.path().to_str().unwrap()).unwrap();
        let found = found.signing_key().unwrap().unwrap();
        assert_eq!(found.public_key(), key.public_key());
        assert!(ControllerConfig::find("/nowhere").is_err());
    }
}
