//! A plan as it goes to the agents: one text, its digest, and who signed it. Start reading at [`seal`].
//!
//! What is signed names the run and its agents, so that a stolen broker cannot send a plan of another run, or give one
//! share to two agents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub use nkeys::KeyPair;
use record::{LoadPlan, Share};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use units::Nanos;

use crate::ids::Id;
use crate::order::SeatTimes;

/// Largest plan.
pub const PLAN_MAX: usize = 256 << 20;

/// Version of what controllers and agents say to each other.
pub const PROTOCOL: u32 = 3;

/// What all agents of a run are to do together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetPlan {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The run, the only one that this plan is for.
    pub run: Id,
    /// Its agents; each has the share of its place in the list.
    pub agents: Vec<Id>,
    /// The whole load; it has an end in time.
    pub load: LoadPlan,
    /// When agents end it by themselves.
    pub times: SeatTimes,
    /// Until when the plan may be carried out, since 1970: a stolen one is of no use for long.
    pub expires: Nanos,
}

/// A plan as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    /// A [`FleetPlan`] as JSON: the bytes that are signed.
    plan: String,
    /// Public key of who signed it; `None`: nobody.
    key: Option<String>,
    /// In base64.
    signature: Option<String>,
}

/// Why a plan is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefused {
    /// The bytes have another SHA-256.
    #[error("the plan was changed on its way: its SHA-256 is not the one that was announced")]
    Digest,
    /// Not a plan.
    #[error("the plan cannot be read: {0}")]
    Unreadable(String),
    /// Another version.
    #[error(
        "the controller speaks version {theirs} and this agent version {PROTOCOL}: use the same joust on every machine"
    )]
    Protocol {
        /// The controller's.
        theirs: u32,
    },
    /// Nobody signed it, and only signed plans are accepted.
    #[error("the plan is not signed, and `trust` in agent.toml requires a signature")]
    Unsigned,
    /// Signed by a stranger.
    #[error("the plan is signed by {key}, which `trust` in agent.toml does not name")]
    Untrusted {
        /// Its public key.
        key: String,
    },
    /// The signature is not of this plan.
    #[error("the signature of the plan is wrong: it was changed, or signed with another key")]
    Signature,
    /// It is of another run.
    #[error("the plan is of run {theirs}, and was sent for run {ours}")]
    Run {
        /// In the plan.
        theirs: Id,
        /// In the order.
        ours: Id,
    },
    /// The plan gives this agent another share, or none.
    #[error("the plan does not give {agent} share {index} of {of}")]
    Share {
        /// This agent.
        agent: Id,
        /// As ordered, from 0.
        index: u32,
        /// As ordered.
        of: u32,
    },
}

/// A plan ready to be stored: its bytes and their SHA-256, in hex.
///
/// # Errors
/// The key cannot sign: it is a public key.
pub fn seal(
    plan: &FleetPlan,
    key: Option<&KeyPair>,
) -> Result<(Vec<u8>, String), nkeys::error::Error> {
    let plan = serde_json::to_string(plan).expect("plain data serialises");
    let signature = key.map(|key| key.sign(plan.as_bytes())).transpose()?;
    let sealed = Sealed {
        plan,
        key: key.map(KeyPair::public_key),
        signature: signature.map(|signature| STANDARD.encode(signature)),
    };
    let bytes = serde_json::to_vec(&sealed).expect("plain data serialises");
    let digest = digest(&bytes);
    Ok((bytes, digest))
}

/// Reads a plan without asking who signed it: for controllers, which made it.
///
/// # Errors
/// [`PlanRefused`].
pub fn read(bytes: &[u8], digest_announced: &str) -> Result<FleetPlan, PlanRefused> {
    let sealed = sealed(bytes, digest_announced)?;
    fleet_plan(&sealed)
}

/// Reads a plan; `trust` are the public keys of those whose plans are accepted, empty: anyone's.
///
/// # Errors
/// [`PlanRefused`].
pub fn open(
    bytes: &[u8],
    digest_announced: &str,
    trust: &[String],
    (run, agent, share): (&Id, &Id, Share),
) -> Result<FleetPlan, PlanRefused> {
    let sealed = sealed(bytes, digest_announced)?;
    if !trust.is_empty() {
        check_signature(&sealed, trust)?;
    }
    let plan = fleet_plan(&sealed)?;
    if plan.run != *run {
        return Err(PlanRefused::Run { theirs: plan.run, ours: run.clone() });
    }
    let is_own = plan.agents.get(share.index as usize) == Some(agent)
        && plan.agents.len() == share.of as usize;
    if !is_own {
        let Share { index, of } = share;
        return Err(PlanRefused::Share { agent: agent.clone(), index, of });
    }
    Ok(plan)
}

fn sealed(bytes: &[u8], digest_announced: &str) -> Result<Sealed, PlanRefused> {
    if digest(bytes) != digest_announced {
        return Err(PlanRefused::Digest);
    }
    serde_json::from_slice(bytes).map_err(|error| PlanRefused::Unreadable(error.to_string()))
}

fn check_signature(sealed: &Sealed, trust: &[String]) -> Result<(), PlanRefused> {
    let (Some(key), Some(signature)) = (&sealed.key, &sealed.signature) else {
        return Err(PlanRefused::Unsigned);
    };
    if !trust.contains(key) {
        return Err(PlanRefused::Untrusted { key: key.chars().take(80).collect() });
    }
    let signature = STANDARD.decode(signature).map_err(|_| PlanRefused::Signature)?;
    let key = KeyPair::from_public_key(key).map_err(|_| PlanRefused::Signature)?;
    key.verify(sealed.plan.as_bytes(), &signature).map_err(|_| PlanRefused::Signature)
}

fn fleet_plan(sealed: &Sealed) -> Result<FleetPlan, PlanRefused> {
    /// What is read before the rest, which another version may write in another way.
    #[derive(Deserialize)]
    struct Version {
        protocol: u32,
    }
    let unreadable = |error: serde_json::Error| PlanRefused::Unreadable(error.to_string());
    let Version { protocol } = serde_json::from_str(&sealed.plan).map_err(unreadable)?;
    if protocol != PROTOCOL {
        return Err(PlanRefused::Protocol { theirs: protocol });
    }
    serde_json::from_str(&sealed.plan).map_err(unreadable)
}

fn digest(bytes: &[u8]) -> String {
    record::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> FleetPlan {
        FleetPlan {
            protocol: PROTOCOL,
            run: "r-1".parse().unwrap(),
            agents: vec!["a-1".parse().unwrap(), "a-2".parse().unwrap()],
            load: crate::tests::plan(),
            times: SeatTimes { dead_man: Nanos::from_secs(15), grace: Nanos::from_secs(5) },
            expires: Nanos::MAX,
        }
    }

    fn opened(
        bytes: &[u8],
        digest: &str,
        trust: &[String],
        index: u32,
    ) -> Result<FleetPlan, PlanRefused> {
        let (run, agent) = ("r-1".parse().unwrap(), "a-2".parse().unwrap());
        open(bytes, digest, trust, (&run, &agent, Share { index, of: 2 }))
    }

    #[test]
    fn a_signed_plan_is_read_by_those_who_trust_its_key() {
        let key = KeyPair::new_user();
        let (bytes, digest) = seal(&plan(), Some(&key)).unwrap();
        assert_eq!(opened(&bytes, &digest, &[key.public_key()], 1), Ok(plan()));
        assert_eq!(opened(&bytes, &digest, &[], 1), Ok(plan()), "no key is required");
        let other = KeyPair::new_user().public_key();
        let refused = opened(&bytes, &digest, &[other], 1);
        assert_eq!(refused, Err(PlanRefused::Untrusted { key: key.public_key() }));
        let (unsigned, digest) = seal(&plan(), None).unwrap();
        assert_eq!(opened(&unsigned, &digest, &[key.public_key()], 1), Err(PlanRefused::Unsigned));
    }

    #[test]
    fn a_plan_that_was_changed_is_refused_whoever_announces_it() {
        let key = KeyPair::new_user();
        let (bytes, announced) = seal(&plan(), Some(&key)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let changed = text.replace("a-1", "a-9").into_bytes();
        assert_ne!(changed, text.as_bytes());
        let trust = [key.public_key()];
        assert_eq!(opened(&changed, &announced, &trust, 1), Err(PlanRefused::Digest));
        let refused = opened(&changed, &digest(&changed), &trust, 1);
        assert_eq!(refused, Err(PlanRefused::Signature), "the broker announces its own");
    }

    #[test]
    fn a_plan_for_another_run_share_or_version_is_refused() {
        let (bytes, digest) = seal(&plan(), None).unwrap();
        let refused = opened(&bytes, &digest, &[], 0);
        assert!(matches!(refused, Err(PlanRefused::Share { index: 0, .. })), "{refused:?}");
        let other = FleetPlan { run: "r-2".parse().unwrap(), ..plan() };
        let (bytes, digest) = seal(&other, None).unwrap();
        assert!(matches!(opened(&bytes, &digest, &[], 1), Err(PlanRefused::Run { .. })));
        let newer = FleetPlan { protocol: 7, ..plan() };
        let (bytes, digest) = seal(&newer, None).unwrap();
        assert_eq!(opened(&bytes, &digest, &[], 1), Err(PlanRefused::Protocol { theirs: 7 }));
    }
}
