//! The user and groups of a process: looked up by name, and assumed permanently. Owns the order of these calls, and the
//! check that none of the previous rights is left. Start reading at [`Identity::find`], then [`Identity::assume`].

use std::ffi::CString;
use std::io;

use nix::unistd::{self, Gid, Group, Uid, User};
use rustix::process::{getppid, parent_process_death_signal, set_parent_process_death_signal};

/// A user, a group, and further groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
    /// All groups of the user, including `gid`.
    groups: Vec<Gid>,
}

impl Identity {
    /// The identity of a user, by name or number, with its own group or the given one. It queries the machine's
    /// databases (nsswitch.conf(5)), which may take long and open files: call it before giving up any rights.
    ///
    /// # Errors
    /// There is no user or group of that name; the user is root, which gives nothing up; a user number without a name
    /// has no group of its own, and none was given.
    pub fn find(user: &str, group: Option<&str>) -> Result<Self, String> {
        let failed = |error: nix::Error| format!("cannot look up the user `{user}`: {error}");
        let number = user.parse().ok().map(Uid::from_raw);
        let known = match number {
            Some(uid) => User::from_uid(uid),
            None => User::from_name(user),
        };
        let known = known.map_err(failed)?;
        let uid = known.as_ref().map(|known| known.uid).or(number);
        let uid = uid.ok_or_else(|| {
            format!("there is no user `{user}` (`getent passwd {user}`); `useradd -r` makes one")
        })?;
        if uid.is_root() {
            return Err(format!("`{user}` is root, who gives no right up: name another"));
        }
        let gid = match (group, &known) {
            (Some(group), _) => group_of(group)?,
            (None, Some(known)) => known.gid,
            (None, None) => {
                return Err(format!("user {user} has no name and so no group: say `group` too"));
            }
        };
        let groups = match known {
            Some(known) => {
                let name = CString::new(known.name).map_err(|error| error.to_string())?;
                unistd::getgrouplist(&name, gid).map_err(failed)?
            }
            None => vec![gid],
        };
        Ok(Self { uid, gid, groups })
    }

    /// The number of the user.
    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Makes this process, with all its threads, that user in those groups, permanently. A parent death signal stays
    /// set.
    ///
    /// # Errors
    /// EPERM if it is not root; `Other` if some previous right is left, or the parent has ended.
    pub fn assume(&self) -> io::Result<()> {
        let Self { uid, gid, groups } = self;
        let (parent, at_its_end) = (getppid(), parent_process_death_signal()?);
        // The user last, because it permits the other calls. All three IDs of each, because a saved one would be a way
        // back.
        unistd::setgroups(groups)?;
        unistd::setresgid(*gid, *gid, *gid)?;
        unistd::setresuid(*uid, *uid, *uid)?;
        let (uids, gids) = (unistd::getresuid()?, unistd::getresgid()?);
        let mut has = unistd::getgroups()?;
        let mut wanted = groups.clone();
        for list in [&mut has, &mut wanted] {
            list.sort_unstable_by_key(|gid| gid.as_raw());
            list.dedup();
        }
        let is_user = [uids.real, uids.effective, uids.saved].iter().all(|has| has == uid);
        let is_group = [gids.real, gids.effective, gids.saved].iter().all(|has| has == gid);
        if !is_user || !is_group || has != wanted {
            return Err(io::Error::other("the kernel kept a user or group of before"));
        }
        // With CAP_SETUID kept by a securebit the process could still go back.
        if unistd::setuid(Uid::from_raw(0)).is_ok() || unistd::setgid(Gid::from_raw(0)).is_ok() {
            return Err(io::Error::other("the process could become root again (securebits?)"));
        }
        // The kernel clears it when the user changes (prctl(2), PR_SET_PDEATHSIG).
        set_parent_process_death_signal(at_its_end)?;
        if at_its_end.is_some() && getppid() != parent {
            return Err(io::Error::other("the process that started this one has ended"));
        }
        Ok(())
    }
}

/// Whether this process has root's rights, so that it can change to another user.
pub fn is_root() -> bool {
    unistd::geteuid().is_root()
}

fn group_of(typed: &str) -> Result<Gid, String> {
    if let Ok(number) = typed.parse() {
        return Ok(Gid::from_raw(number));
    }
    let known = Group::from_name(typed);
    let known = known.map_err(|error| format!("cannot look up the group `{typed}`: {error}"))?;
    known.map(|group| group.gid).ok_or_else(|| {
        format!("there is no group `{typed}` (`getent group {typed}`); `groupadd -r` makes one")
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::process::tests::alone;

    #[test]
    fn what_is_no_identity_is_refused_with_the_command_that_helps() {
        let refusal = |user, group| Identity::find(user, group).unwrap_err();
        assert!(refusal("no-such-user", None).contains("getent passwd no-such-user"));
        assert!(refusal("nobody", Some("no-such-group")).contains("getent group no-such-group"));
        assert!(refusal("root", None).contains("root"));
        assert!(refusal("0", Some("nogroup")).contains("root"));
        assert!(refusal("4000000001", None).contains("say `group` too"));
    }

    #[test]
    fn an_identity_is_taken_on_with_all_its_groups_and_for_good() {
        if !is_root() {
            return skips::note("only root can take on another identity");
        }
        alone(|| {
            let nobody = Identity::find("nobody", None).unwrap();
            crate::process::die_with_parent().unwrap();
            nobody.assume().unwrap();
            assert!(parent_process_death_signal().unwrap().is_some());
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name)).unwrap();
                line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
            };
            let uid = nobody.uid().to_string();
            assert!(line("Uid:").iter().all(|number| *number == uid), "{status}");
            assert!(!line("Gid:").contains(&"0".to_owned()), "{status}");
            assert!(!line("Groups:").contains(&"0".to_owned()), "{status}");
            assert_eq!(line("CapEff:"), ["0000000000000000"]);
            assert_eq!(line("CapPrm:"), ["0000000000000000"]);
            assert!(std::fs::File::open("/etc/shadow").is_err());
            assert!(nobody.assume().is_err(), "groups cannot be set any more");
        });
    }
}
