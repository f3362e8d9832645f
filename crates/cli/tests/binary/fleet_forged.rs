//! What strangers send over a fleet's broker: plans that were changed, of other versions or runs, agents of another joust,
//! and programs without key or certificate. All of it is refused, and nothing is loaded. Start reading at [`Forger`].

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use ::fleet::agent::Report;
use ::fleet::broker::{Access, Broker, Found, Subscription};
use ::fleet::ids::Id;
use ::fleet::order::{Answer, Command, Order, SeatTimes};
use ::fleet::plan::{self, FleetPlan, PROTOCOL};
use ::fleet::subject;
use record::Share;
use units::Nanos;

use crate::fleet::{Fleet, Ours, all_at_once, ended, until};
use crate::{joust, said, stdout};

/// Somebody who speaks as a controller does.
struct Forger {
    broker: Arc<Broker>,
    answers: Receiver<Answer>,
    _subscribed: Subscription,
    run: Id,
    agent: Id,
    load: record::LoadPlan,
}

const TIMES: SeatTimes = SeatTimes { dead_man: Nanos::from_secs(15), grace: Nanos::from_secs(5) };

/// SHA-256 of `{}`.
const DIGEST_OF_BRACES: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

impl Forger {
    fn new(fleet: &Fleet, run: &str) -> Self {
        let access = Access { url: fleet.url(), ..Access::default() };
        let broker = Arc::new(Broker::connect(&access, "forger", |_| false).unwrap());
        broker.make_places().unwrap();
        let (run, agent): (Id, Id) = (run.parse().unwrap(), "a1".parse().unwrap());
        let (to, answers) = mpsc::sync_channel(100);
        let read =
            |_: &str, bytes: &[u8]| Some(serde_json::from_slice::<Report>(bytes).ok()?.answer);
        let _subscribed = broker.subscribe(&subject::answers(&run, &agent), to, read).unwrap();
        let mut options = load::LoadOptions::new(&fleet.server.as_ref().unwrap().url);
        options.draft.stop.duration = Some(Nanos::from_secs(2));
        let load = options.plan().unwrap();
        Self { broker, answers, _subscribed, run, agent, load }
    }

    fn plan(&self) -> FleetPlan {
        FleetPlan {
            protocol: PROTOCOL,
            run: self.run.clone(),
            agents: vec![self.agent.clone()],
            load: self.load.clone(),
            times: TIMES,
            expires: sys::clock::wall() + Nanos::from_secs(3_600),
        }
    }

    fn order(&self, order: Order) {
        let command = Command { run: self.run.clone(), epoch: 1, order };
        let bytes = serde_json::to_vec(&command).unwrap();
        self.broker.publish(&subject::orders(&self.agent), bytes).unwrap();
    }

    /// Has the agent prepare these bytes, and returns why it refuses them.
    fn refused(&self, digest: &str, bytes: &[u8], duration: Nanos) -> String {
        self.broker.put_plan(digest, bytes).unwrap();
        self.order(Order::Prepare {
            plan: digest.to_owned(),
            share: Share { index: 0, of: 1 },
            duration,
            times: TIMES,
            clock_error_max: Nanos::from_secs(1),
        });
        loop {
            match self.answers.recv_timeout(Duration::from_secs(60)).expect("it answers") {
                Answer::Failed(why) => {
                    self.order(Order::Cancel);
                    return why;
                }
                Answer::Preparing => {}
                other => panic!("it was not refused: {other:?}"),
            }
        }
    }
}

fn plans_that_are_not_what_they_should_be_are_refused() {
    let Some(mut fleet) = Fleet::start(1) else { return };
    let seconds = Nanos::from_secs;
    for case in ["digest", "protocol", "run", "agent", "duration", "expired", "no-plan"] {
        let forger = Forger::new(&fleet, &format!("r-{case}"));
        let mut plan = forger.plan();
        let (mut duration, mut announced) = (seconds(2), None);
        let why = match case {
            "digest" => {
                announced = Some("0".repeat(64));
                "its SHA-256 is not the one that was announced"
            }
            "protocol" => {
                plan.protocol = 99;
                "the controller speaks version 99 and this agent version"
            }
            "run" => {
                plan.run = "r-other".parse().unwrap();
                "the plan is of run r-other"
            }
            "agent" => {
                plan.agents = vec!["a2".parse().unwrap()];
                "the plan does not give a1 share"
            }
            "duration" => {
                duration = seconds(3_600);
                "the order has other times than the plan"
            }
            "expired" => {
                plan.expires = sys::clock::wall().saturating_sub(seconds(2 * 3_600));
                "the plan expired 2 hours ago by this machine's clock"
            }
            _ => "the plan cannot be read",
        };
        let (mut bytes, mut digest) = plan::seal(&plan, None).unwrap();
        if case == "no-plan" {
            bytes = b"{}".to_vec();
            digest = DIGEST_OF_BRACES.to_owned();
        }
        let refused = forger.refused(announced.as_ref().unwrap_or(&digest), &bytes, duration);
        assert!(refused.contains(why), "{case}: {refused}");
        fleet.wait_for_no_load();
    }
    assert_eq!(fleet.answered(), 0, "nothing was sent");
}

fn an_agent_of_another_version_and_two_of_one_name_are_named() {
    let Some(mut fleet) = Fleet::start(1) else { return };
    let access = Access { url: fleet.url(), ..Access::default() };
    let broker = Broker::connect(&access, "stranger", |_| false).unwrap();
    let mine = Found {
        agent: "a0".parse().unwrap(),
        version: "9.9.9".to_owned(),
        protocol: PROTOCOL + 1,
        cpus: 1,
        kernel: "6.1".to_owned(),
    };
    let announced = broker.announce(&mine).unwrap();
    fleet.wait_for(2);
    let refused = |why: &str| {
        let (code, _, errors) = ended(fleet.load(&["-d", "1", "-c", "2", "--verify", "none"]));
        assert_eq!(code, Some(1), "{errors}");
        assert!(errors.contains(why), "{errors}");
    };
    refused("agent a0 is joust 9.9.9 and speaks version");
    drop(announced);
    // It may be found for a while after it has gone.
    drop(broker);
    fleet.wait_for(1);
    let broker = Broker::connect(&access, "stranger", |_| false).unwrap();
    let twin = Found { agent: "a1".parse().unwrap(), protocol: PROTOCOL, ..mine };
    let _announced = broker.announce(&twin).unwrap();
    fleet.wait_for(2);
    refused("two agents are named a1");
    assert_eq!(fleet.answered(), 0, "nothing was sent");
}

fn who_lacks_a_key_or_a_certificate_is_not_admitted_and_is_told_why() {
    let Some(mut fleet) = Fleet::start(0) else { return };
    let made = fleet.secured();
    let text = std::fs::read_to_string(made.join("agent.toml")).unwrap();
    let without = |name: &str, keys: &[&str]| {
        let is_kept = |line: &&str| !keys.iter().any(|key| line.starts_with(key));
        let path = made.join(name);
        let kept: Vec<&str> = text.lines().filter(is_kept).collect();
        std::fs::write(&path, kept.join("\n")).unwrap();
        path
    };
    // Files that are not there end it at once: waiting would not bring them.
    for (key, file) in [("ca = ", "ca = \"gone.pem\""), ("nkey = ", "nkey = \"gone.nk\"")] {
        let path = without("gone.toml", &[key]);
        let kept = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{file}\n{kept}")).unwrap();
        let agent = joust(&["agent", "--config", path.to_str().unwrap()]).output().unwrap();
        assert_eq!(agent.status.code(), Some(2), "{}", said(&agent));
        assert!(said(&agent).contains("cannot read") && said(&agent).contains("gone."));
    }
    // A broker may be set up later to admit it, so it says why it waits, and waits.
    for (keys, why) in [(&["nkey"][..], "authorization"), (&["ca", "nkey"], "certificate")] {
        let log = fleet.folder.path().join("refused.log");
        let path = without("lacking.toml", keys);
        let agent = joust(&["agent", "--config", path.to_str().unwrap(), "--name", "lacking"])
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut agent = Ours(agent);
        let heard = || std::fs::read_to_string(&log).unwrap().to_lowercase();
        until("it says why", || heard().contains("trying again until it answers"));
        assert!(heard().contains(why), "{}", heard());
        let found = joust(&["fleet", "agents", "--fleet", made.to_str().unwrap()]).output();
        assert!(stdout(&found.unwrap()).contains("0 agents answered."));
        agent.signal("TERM");
        until("it ends", || matches!(agent.0.try_wait(), Ok(Some(_))));
    }
    assert_eq!(fleet.answered(), 0, "nothing was sent");
}

/// As those of [`crate::fleet`].
#[test]
fn fleets_with_strangers() {
    all_at_once(&[
        (
            "plans_that_are_not_what_they_should_be_are_refused",
            plans_that_are_not_what_they_should_be_are_refused as fn(),
        ),
        (
            "an_agent_of_another_version_and_two_of_one_name_are_named",
            an_agent_of_another_version_and_two_of_one_name_are_named as fn(),
        ),
        (
            "who_lacks_a_key_or_a_certificate_is_not_admitted_and_is_told_why",
            who_lacks_a_key_or_a_certificate_is_not_admitted_and_is_told_why as fn(),
        ),
    ]);
}
