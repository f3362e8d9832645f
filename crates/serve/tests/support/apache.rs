//! A real Apache for the tests that compare with it. Owns its configuration, start and end. Needs Debian's
//! apache2. Start reading at [`Apache::start`].

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};

use sys::process::{Pid, Signal};

use super::eventually;

/// A running Apache.
pub(crate) struct Apache {
    pub(crate) process: Child,
    pub(crate) addr: SocketAddr,
    /// Its ServerRoot; what it serves is `root` in it.
    pub(crate) dir: tempfile::TempDir,
}

impl Drop for Apache {
    fn drop(&mut self) {
        // When its parent ends, it ends its children.
        let pid = Pid::from_raw(self.process.id() as i32).unwrap();
        let _ = sys::process::signal(pid, Signal::TERM);
        let _ = self.process.wait();
    }
}

impl Apache {
    /// Starts one with that model and with settings as `NAME=VALUE`; `None`, with a note: Apache is not installed.
    pub(crate) fn start(model: &str, settings: &[&str]) -> Option<Self> {
        const PROGRAM: &str = "/usr/sbin/apache2";
        const MODULES: &str = "/usr/lib/apache2/modules";
        if !Path::new(PROGRAM).exists() {
            skips::note(format_args!("there is no {PROGRAM} (scripts/peers.sh installs it)"));
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut text = format!(
            "ServerRoot {path}\nDefaultRuntimeDir {path}\nPidFile {path}/pid\nServerName localhost\n\
             Listen {addr}\nLoadModule mpm_{model}_module {MODULES}/mod_mpm_{model}.so\n\
             LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
             LoadModule dir_module {MODULES}/mod_dir.so\nErrorLog {path}/error.log\n\
             DocumentRoot {path}/root\nDirectoryIndex index.html\n"
        );
        if rustix::process::geteuid().is_root() {
            text.push_str("User www-data\nGroup www-data\n");
        }
        for setting in settings {
            writeln!(text, "{}", setting.replace('=', " ")).unwrap();
        }
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::write(dir.path().join("root/index.html"), [b'x'; 3361]).unwrap();
        fs::write(dir.path().join("conf"), text).unwrap();
        // Its children serve as another account.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), mode).unwrap();
        let process = Command::new(PROGRAM)
            .args(["-d", dir.path().to_str().unwrap(), "-D", "FOREGROUND", "-f"])
            .arg(dir.path().join("conf"))
            // It ends by a signal to its process group, which must not be that of the tests.
            .process_group(0)
            .spawn()
            .unwrap();
        let apache = Self { process, addr, dir };
        // It listens earlier, and resets connections of that time. Notices are in the log whatever its level.
        let log = apache.dir.path().join("error.log");
        eventually("Apache serves", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("resuming normal operations"))
        });
        Some(apache)
    }
}
