//! The files of a new fleet: an authority and the broker's certificate, a key for each role, and the configuration of
//! broker, controller and agents. Start reading at [`write()`].
//!
//! Agents may publish what they report and read plans, nothing else: whoever takes an agent's key commands nobody.
//! Whoever takes the broker commands nobody either, since agents check who signed a plan.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa};

/// Why no fleet was set up. What was written so far is removed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A file.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// As given.
        path: PathBuf,
        /// Mostly that it exists.
        source: io::Error,
    },
    /// A certificate.
    #[error("cannot make a certificate for {names}: {why}")]
    Certificate {
        /// Names of the broker.
        names: String,
        /// A sentence.
        why: String,
    },
    /// A key.
    #[error("cannot make a key: {0}")]
    Key(#[from] nkeys::error::Error),
}

/// Writes the files into a new folder; `hosts` are the names of the broker. Returns what to do next.
///
/// # Errors
/// [`InitError`].
pub fn write(folder: &Path, hosts: &[String], port: u16) -> Result<String, InitError> {
    let failed = |source| InitError::Write { path: folder.to_owned(), source };
    DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    let written = files(hosts, port).and_then(|files| {
        files.iter().try_for_each(|(name, text)| {
            let path = folder.join(name);
            private(&path, text).map_err(|source| InitError::Write { path, source })
        })
    });
    if written.is_err() {
        // It was made above, so that nothing else is in it.
        std::fs::remove_dir_all(folder).ok();
    }
    written.map(|()| next(folder, &hosts[0], port))
}

/// A file that only its owner can read: most of them hold a key.
fn private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn files(hosts: &[String], port: u16) -> Result<Vec<(&'static str, String)>, InitError> {
    let (ca, chain, key) = certificates(hosts).map_err(|error| InitError::Certificate {
        names: hosts.join(", "),
        why: error.to_string(),
    })?;
    let [controller, agent, sign] = [KeyPair::new_user(), KeyPair::new_user(), KeyPair::new_user()];
    let url = format!("tls://{}:{port}", bracketed(&hosts[0]));
    Ok(vec![
        ("ca.pem", ca),
        ("server.pem", chain),
        ("server.key", key),
        ("controller.nk", line(&controller.seed()?)),
        ("agent.nk", line(&agent.seed()?)),
        ("sign.nk", line(&sign.seed()?)),
        ("nats.conf", nats_conf(port, &controller.public_key(), &agent.public_key())),
        ("controller.toml", controller_toml(&url)),
        ("agent.toml", agent_toml(&url, &sign.public_key())),
        ("nats.service", NATS_SERVICE.to_owned()),
        ("joust-agent.service", AGENT_SERVICE.to_owned()),
    ])
}

/// The authority's certificate, the broker's, and its key (PEM).
fn certificates(hosts: &[String]) -> Result<(String, String, String), rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, "joust fleet");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, rcgen::KeyPair::generate()?)?;
    let key = rcgen::KeyPair::generate()?;
    let server = CertificateParams::new(hosts.to_vec())?.signed_by(&key, &authority)?;
    Ok((authority.pem(), server.pem(), key.serialize_pem()))
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// A host as it stands in a URL.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn nats_conf(port: u16, controller: &str, agent: &str) -> String {
    format!(
        r#"# The broker of a fleet: nats-server -c nats.conf (2.15 or later), started in this folder.
listen: "0.0.0.0:{port}"
server_name: joust
max_payload: 1MB

tls {{
  cert_file: "server.pem"
  key_file: "server.key"
  ca_file: "ca.pem"
}}

jetstream {{
  store_dir: "jetstream"
  max_file_store: 8GB
}}

authorization {{
  users: [
    # Controllers: joust load --fleet, joust fleet.
    {{ nkey: "{controller}", permissions: {{ publish: ">", subscribe: ">" }} }}
    # Agents: they report, ask for the run clock, and read plans.
    {{
      nkey: "{agent}"
      permissions: {{
        publish: {{ allow: [
          "joust.v1.ans.>", "joust.v1.m.>", "joust.v1.clk.>",
          "$JS.API.STREAM.INFO.OBJ_JOUST_PLANS",
          "$JS.API.STREAM.MSG.GET.OBJ_JOUST_PLANS",
          "$JS.API.DIRECT.GET.OBJ_JOUST_PLANS", "$JS.API.DIRECT.GET.OBJ_JOUST_PLANS.>",
          "$JS.API.CONSUMER.CREATE.OBJ_JOUST_PLANS", "$JS.API.CONSUMER.CREATE.OBJ_JOUST_PLANS.>",
          "$JS.API.CONSUMER.DELETE.OBJ_JOUST_PLANS.>",
          "$JS.FC.OBJ_JOUST_PLANS.>",
        ] }}
        subscribe: {{ allow: ["joust.v1.cmd.*", "joust.v1.ctl.*", "joust.v1.inbox.>", "$SRV.>"] }}
        allow_responses: true
      }}
    }}
  ]
}}
"#
    )
}

fn controller_toml(url: &str) -> String {
    format!(
        r#"# For machines that command: joust load --fleet FOLDER. Keep sign.nk to yourself: agents obey it.
broker = "{url}"
ca = "ca.pem"
nkey = "controller.nk"
sign = "sign.nk"
"#
    )
}

fn agent_toml(url: &str, trusted: &str) -> String {
    format!(
        r#"# For machines that make load: joust agent --config agent.toml. Beside it: ca.pem and agent.nk.
join = "{url}"
ca = "ca.pem"
nkey = "agent.nk"

# Whose plans are carried out.
trust = ["{trusted}"]

# What may be loaded from here: nothing else, whoever asks. Examples: "10.0.0.0/8:80", "[fd00::/8]:8000-8099",
# "test.example:443", "unix:/run/test.sock".
targets = []

# Limits of this agent: requests a second (without it there is none), and connections.
# rate_max = 50000
# connections_max = 10000

# Where results stay until they are collected.
# spool = "/var/lib/joust/spool"
"#
    )
}

const NATS_SERVICE: &str = "\
[Unit]
Description=NATS broker of a joust fleet
After=network-online.target
Wants=network-online.target

[Service]
WorkingDirectory=/etc/joust-fleet
ExecStart=/usr/local/bin/nats-server -c /etc/joust-fleet/nats.conf
Restart=on-failure

[Install]
WantedBy=multi-user.target
";

const AGENT_SERVICE: &str = "\
[Unit]
Description=joust load agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=/usr/local/bin/joust agent --config /etc/joust-fleet/agent.toml
# A restarted agent is another one: its run is over, and its spool can still be collected.
Restart=always
RestartSec=5
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
";

fn next(folder: &Path, host: &str, port: u16) -> String {
    let folder = folder.display();
    format!(
        "{folder} holds a new fleet. Next:
  1. on {host}: cd {folder} && nats-server -c nats.conf
  2. in agent.toml: name what may be loaded (`targets`)
  3. on each machine that makes load, with agent.toml, agent.nk and ca.pem in one folder:
     joust agent --config agent.toml
  4. here: joust load --fleet {folder} http://SERVER/ -d 30
Agents connect to port {port} of {host}; nothing connects to them.
"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::{AgentConfig, ControllerConfig};

    #[test]
    fn what_is_written_can_be_used_and_is_private() {
        let folder = tempfile::tempdir().unwrap().path().join("fleet");
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let said = write(&folder, &["broker.example".to_owned(), "::1".to_owned()], 4222).unwrap();
        assert!(said.contains("joust agent --config agent.toml"), "{said}");
        let agent = AgentConfig::read(&folder.join("agent.toml")).unwrap();
        let controller = ControllerConfig::find(folder.to_str().unwrap()).unwrap();
        let key = controller.signing_key().unwrap().unwrap();
        assert_eq!(agent.trust, [key.public_key()]);
        assert!(agent.permit().targets.is_empty(), "nothing may be loaded until its owner says so");
        let access = agent.access(agent.join.clone().unwrap()).unwrap();
        assert_eq!(access.url, "tls://broker.example:4222");
        let conf = std::fs::read_to_string(folder.join("nats.conf")).unwrap();
        let admitted = KeyPair::from_seed(&access.nkey.unwrap()).unwrap().public_key();
        assert!(conf.contains(&admitted), "{conf}");
        for entry in std::fs::read_dir(&folder).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0);
        }
        let again = write(&folder, &["broker.example".to_owned()], 4222).unwrap_err().to_string();
        assert!(again.contains("exists"), "{again}");
        assert!(folder.join("ca.pem").exists(), "what was there stays");
    }
}
