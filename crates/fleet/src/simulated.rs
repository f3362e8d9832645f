//! A controller and its agents in virtual time, over a network that loses, repeats and delays messages, for the tests:
//! agents and controllers die, and clocks differ. Start reading at [`World::run`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use units::Nanos;

use crate::conductor::{Conductor, OnLoss, Phase, RunTimes};
use crate::ids::Id;
use crate::message::AgentTotals;
use crate::order::{Answer, Command, Order, SeatTimes};
use crate::seat::{Deed, Seat};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
pub(crate) const DURATION: Nanos = Nanos(40 * SECOND);

/// What is planted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// Of 100 messages, as many are lost.
    pub(crate) lost: u64,
    /// Of 100 messages, as many come twice.
    pub(crate) twice: u64,
    /// Longest way of a message, in milliseconds.
    pub(crate) way_ms: u64,
    /// When an agent dies, and which.
    pub(crate) agent_dies: Option<(Nanos, usize)>,
    /// When the controller dies.
    pub(crate) controller_dies: Option<Nanos>,
    /// When an agent can no longer be reached, and which; it goes on.
    pub(crate) cut_off: Option<(Nanos, usize)>,
    pub(crate) on_loss_continue: bool,
}

/// What happened on an agent, in true time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lived {
    pub(crate) began: Option<Nanos>,
    pub(crate) ended: Option<Nanos>,
    pub(crate) planned: Option<Nanos>,
    pub(crate) deleted: bool,
}

enum Message {
    Order(usize, Command),
    Answer(usize, Answer),
    Sign(u64),
}

pub(crate) struct World {
    pub(crate) conductor: Conductor,
    pub(crate) lived: Vec<Lived>,
    pub(crate) seats: Vec<Seat>,
    trouble: Trouble,
    ids: Vec<Id>,
    /// An agent's clock less the true time.
    offsets: Vec<u64>,
    loads: Vec<Option<Load>>,
    random: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    messages: BTreeMap<u64, Message>,
    n_messages: u64,
}

/// A load on an agent, in true time.
#[derive(Debug, Clone, Copy)]
struct Load {
    from: u64,
    until: u64,
}

impl World {
    pub(crate) fn new(agents: usize, trouble: Trouble, seed: u64) -> Self {
        let ids: Vec<Id> = (0..agents).map(|n| format!("a-{n}").parse().unwrap()).collect();
        let on_loss = if trouble.on_loss_continue { OnLoss::Continue } else { OnLoss::Abort };
        let conductor = Conductor::new(
            ("r-1".parse().unwrap(), 1),
            ("digest".to_owned(), DURATION),
            &ids,
            (RunTimes::default(), on_loss),
            Nanos(0),
        );
        Self {
            conductor,
            lived: vec![Lived::default(); agents],
            seats: (0..agents).map(|_| Seat::default()).collect(),
            trouble,
            ids,
            offsets: (0..agents as u64).map(|n| n * 3_600 * SECOND).collect(),
            loads: vec![None; agents],
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            queue: BinaryHeap::new(),
            messages: BTreeMap::new(),
            n_messages: 0,
        }
    }

    /// Until the time is over.
    pub(crate) fn run(&mut self, seconds: u64) {
        for at in (0..seconds * SECOND).step_by((50 * MILLI) as usize) {
            self.deliver(at);
            for agent in 0..self.seats.len() {
                if self.is_alive(agent, at) {
                    self.tick(agent, at);
                }
            }
            if self.trouble.controller_dies.is_none_or(|dies| at < dies.0) {
                if at.is_multiple_of(250 * MILLI) {
                    for (id, command) in self.conductor.orders(Nanos(at)) {
                        let agent = self.ids.iter().position(|one| *one == id).unwrap();
                        self.send(at, agent, || Message::Order(agent, command.clone()));
                    }
                }
                if at.is_multiple_of(SECOND) {
                    (0..self.seats.len())
                        .for_each(|agent| self.send(at, agent, || Message::Sign(agent as u64)));
                }
            }
        }
    }

    fn is_alive(&self, agent: usize, at: u64) -> bool {
        self.trouble.agent_dies.is_none_or(|(dies, who)| who != agent || at < dies.0)
    }

    fn tick(&mut self, agent: usize, at: u64) {
        let own = Nanos(at + self.offsets[agent]);
        if let Some(deed) = self.seats[agent].tick(own) {
            self.carry_out(agent, deed, at);
        }
        if let Some(load) = self.loads[agent].filter(|load| at >= load.from) {
            let lived = &mut self.lived[agent];
            lived.began.get_or_insert(Nanos(load.from));
            lived.planned = Some(Nanos(load.from));
            if at >= load.until {
                lived.ended = Some(Nanos(load.until.min(at)));
                self.loads[agent] = None;
                let totals = AgentTotals {
                    messages: 5,
                    windows: 5,
                    started: 10,
                    done: 10,
                    interrupted: false,
                };
                self.seats[agent].finished(&"r-1".parse().unwrap(), Ok(totals), own);
                self.conductor_collects(agent);
            }
        }
        if at.is_multiple_of(SECOND)
            && let Some((_, answer)) = self.seats[agent].standing()
        {
            self.send(at, agent, || Message::Answer(agent, answer.clone()));
        }
    }

    /// The stream keeps what was sent, so that it comes to the controller some time.
    fn conductor_collects(&mut self, agent: usize) {
        if self.trouble.cut_off.is_none_or(|(_, who)| who != agent) {
            self.conductor.collected(&self.ids[agent].clone());
        }
    }

    fn carry_out(&mut self, agent: usize, deed: Deed, at: u64) {
        match deed {
            Deed::Prepare(Order::Prepare { .. }) => {
                self.seats[agent].prepared(&"r-1".parse().unwrap(), Ok(()));
            }
            Deed::Prepare(_) => unreachable!("only a plan is prepared"),
            Deed::Begin { at: own } => {
                let from = own.0 - self.offsets[agent];
                self.loads[agent] = Some(Load { from, until: from + DURATION.0 });
            }
            Deed::End { .. } => {
                if let Some(load) = &mut self.loads[agent] {
                    load.until = load.until.min(at);
                }
            }
            Deed::Resend(_) => {}
            Deed::Forget => self.loads[agent] = None,
            Deed::Delete => self.lived[agent].deleted = true,
        }
    }

    fn deliver(&mut self, at: u64) {
        while let Some(&Reverse((due, key))) = self.queue.peek()
            && due <= at
        {
            self.queue.pop();
            let controller_lives = self.trouble.controller_dies.is_none_or(|dies| at < dies.0);
            match self.messages.remove(&key).unwrap() {
                Message::Order(agent, command) if self.is_alive(agent, at) => {
                    let own = Nanos(at + self.offsets[agent]);
                    let offset = self.offsets[agent];
                    let to_agent = |run: Nanos| Some(Nanos(run.0 + offset));
                    let (answer, deed) = self.seats[agent].obey(&command, own, to_agent);
                    if let Some(deed) = deed {
                        self.carry_out(agent, deed, at);
                    }
                    self.send(at, agent, || Message::Answer(agent, answer.clone()));
                }
                Message::Answer(agent, answer) if controller_lives => {
                    let id = self.ids[agent].clone();
                    self.conductor.answered(&id, answer, Nanos(at));
                }
                Message::Sign(agent) => {
                    let agent = agent as usize;
                    let own = Nanos(at + self.offsets[agent]);
                    self.seats[agent].heard(&"r-1".parse().unwrap(), 1, own);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, at: u64, agent: usize, message: impl Fn() -> Message) {
        if self.trouble.cut_off.is_some_and(|(when, who)| who == agent && at >= when.0) {
            return;
        }
        if self.below(100) < self.trouble.lost {
            return;
        }
        let copies = 1 + u64::from(self.below(100) < self.trouble.twice);
        for _ in 0..copies {
            let way = self.below(self.trouble.way_ms.max(1) * MILLI) + 1;
            self.messages.insert(self.n_messages, message());
            self.queue.push(Reverse((at + way, self.n_messages)));
            self.n_messages += 1;
        }
    }

    /// Xorshift (Marsaglia 2003).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }
}

mod tests {
    use super::*;

    fn over(world: &World) -> Option<Option<String>> {
        match world.conductor.phase() {
            Phase::Over { why } => Some(why.clone()),
            _ => None,
        }
    }

    #[test]
    fn all_begin_at_one_instant_although_their_clocks_are_hours_apart() {
        let mut world = World::new(4, Trouble { way_ms: 5, ..Trouble::default() }, 1);
        world.run(60);
        assert_eq!(over(&world), Some(None));
        let began: Vec<Nanos> = world.lived.iter().map(|one| one.began.unwrap()).collect();
        assert!(began.iter().all(|one| *one == began[0]), "{began:?}");
        for one in &world.lived {
            assert_eq!(one.ended.unwrap(), began[0] + DURATION);
            assert!(one.deleted, "the spool of a collected run goes");
        }
    }

    #[test]
    fn whatever_is_lost_who_begins_does_so_at_one_instant_and_every_run_ends() {
        let mut completed = 0;
        for seed in 1..400 {
            let trouble = Trouble {
                lost: seed % 40,
                twice: seed % 30,
                way_ms: 1 + seed % 900,
                ..Trouble::default()
            };
            let mut world = World::new(1 + (seed % 5) as usize, trouble, seed);
            world.run(200);
            let why = over(&world);
            assert!(why.is_some(), "seed {seed}: it is in {:?}", world.conductor.phase());
            let began: Vec<Nanos> = world.lived.iter().filter_map(|one| one.began).collect();
            assert!(began.iter().all(|one| *one == began[0]), "seed {seed}: {began:?}");
            if why == Some(None) {
                completed += 1;
                assert_eq!(began.len(), world.lived.len(), "seed {seed}");
            }
            for one in world.lived.iter().filter(|one| one.began.is_some()) {
                assert!(one.ended.is_some(), "seed {seed}: it loads for ever");
            }
            assert!(world.seats.iter().all(|seat| !seat.is_loading()), "seed {seed}");
        }
        assert!(completed > 100, "{completed} of 399 runs were completed");
    }

    #[test]
    fn agents_whose_controller_dies_end_by_themselves() {
        for millis in (0..12_000).step_by(250) {
            let dies = Nanos(millis * MILLI);
            let trouble = Trouble { way_ms: 20, controller_dies: Some(dies), ..Trouble::default() };
            let mut world = World::new(3, trouble, 1 + millis);
            world.run(60);
            let limit = dies + RunTimes::default().dead_man + Nanos(SECOND);
            for one in &world.lived {
                assert_eq!(one.began.is_some(), one.ended.is_some(), "died at {dies}");
                assert!(one.ended.is_none_or(|ended| ended <= limit), "died at {dies}: {one:?}");
            }
            let is_held =
                |seat: &Seat| !matches!(seat.standing(), None | Some((_, Answer::Finished(_))));
            assert!(!world.seats.iter().any(is_held), "died at {dies}: an agent is held");
        }
    }

    #[test]
    fn an_agent_that_dies_ends_the_run_or_is_missed() {
        for on_loss_continue in [false, true] {
            for millis in (0..9_000).step_by(500) {
                let dies = Nanos(millis * MILLI);
                let trouble = Trouble {
                    way_ms: 20,
                    agent_dies: Some((dies, 1)),
                    on_loss_continue,
                    ..Trouble::default()
                };
                let mut world = World::new(3, trouble, 7 + millis);
                world.run(120);
                let why = over(&world).unwrap_or_else(|| panic!("died at {dies}: it never ended"));
                let was_over = world.lived[1].ended.is_some();
                let goes_on = on_loss_continue && world.lived[0].began.is_some();
                if !(was_over || goes_on) {
                    let why = why.unwrap_or_else(|| panic!("died at {dies}: nobody noticed"));
                    assert!(why.contains("a-1"), "{why}");
                }
                assert!(
                    world.seats.iter().enumerate().all(|(n, seat)| n == 1 || !seat.is_loading())
                );
            }
        }
    }

    #[test]
    fn who_takes_over_does_not_wait_for_the_plan_where_nobody_is_left() {
        let id: Id = "a-0".parse().unwrap();
        let mut conductor = Conductor::new(
            ("r-1".parse().unwrap(), 2),
            ("digest".to_owned(), Nanos(3_600 * SECOND)),
            std::slice::from_ref(&id),
            (RunTimes::default(), OnLoss::Continue),
            Nanos(0),
        )
        .taking_over(Some(Nanos(0)));
        let over_at = (0..200).find(|second| {
            let orders = conductor.orders(Nanos(second * SECOND));
            assert!(orders.is_empty(), "nobody answers: {orders:?}");
            matches!(conductor.phase(), Phase::Over { why: None })
        });
        let lost = RunTimes::default().lost.0 / SECOND;
        assert!(over_at.is_some_and(|at| (lost..3 * lost).contains(&at)), "{over_at:?}");
    }

    #[test]
    fn an_agent_with_an_old_run_takes_a_new_one_and_the_old_controller_is_refused() {
        let mut seat = Seat::default();
        let command = |run: &str, epoch, order| Command { run: run.parse().unwrap(), epoch, order };
        let share = record::Share { index: 0, of: 1 };
        let prepare = Order::Prepare {
            plan: "digest".to_owned(),
            share,
            duration: DURATION,
            times: SeatTimes { dead_man: DURATION, grace: DURATION },
            clock_error_max: Nanos::from_millis(5),
        };
        let mut tell =
            |run: &str, epoch, order| seat.obey(&command(run, epoch, order), Nanos(1), Some).0;
        assert_eq!(tell("r-1", 2, prepare.clone()), Answer::Preparing);
        assert_eq!(tell("r-1", 1, Order::Cancel), Answer::Fenced { by: 2 });
        assert_eq!(tell("r-2", 1, prepare.clone()), Answer::Busy("r-1".parse().unwrap()));
        assert_eq!(tell("r-2", 1, Order::Cancel), Answer::Free);
        let totals =
            AgentTotals { messages: 1, windows: 1, started: 1, done: 1, interrupted: false };
        seat.prepared(&"r-1".parse().unwrap(), Ok(()));
        seat.finished(&"r-1".parse().unwrap(), Ok(totals), Nanos(2));
        let busy = seat.obey(&command("r-2", 1, prepare.clone()), Nanos(3), Some).0;
        assert_eq!(busy, Answer::Busy("r-1".parse().unwrap()), "its result is being collected");
        let later = Nanos(61 * SECOND);
        let (answer, deed) = seat.obey(&command("r-2", 1, prepare), later, Some);
        assert_eq!(answer, Answer::Preparing);
        assert!(matches!(deed, Some(Deed::Prepare(_))));
    }

    #[test]
    fn a_beat_that_was_long_on_its_way_does_not_shorten_the_dead_man_timer() {
        let (mut seat, run) = (Seat::default(), "r-1".parse().unwrap());
        let order = Order::Prepare {
            plan: "digest".to_owned(),
            share: record::Share { index: 0, of: 1 },
            duration: DURATION,
            times: SeatTimes { dead_man: Nanos(5 * SECOND), grace: DURATION },
            clock_error_max: Nanos::from_millis(5),
        };
        let now = Nanos(60 * SECOND);
        seat.obey(&Command { run: "r-1".parse().unwrap(), epoch: 1, order }, now, Some);
        for (epoch, sent) in [(1, Nanos(50 * SECOND)), (2, Nanos::ZERO)] {
            seat.heard(&run, epoch, sent);
            assert_eq!(seat.tick(now + Nanos(4 * SECOND)), None, "sent at {sent}");
        }
        assert_eq!(seat.epoch(&run), 2);
        assert_eq!(seat.tick(now + Nanos(6 * SECOND)), Some(Deed::Forget));
    }

    #[test]
    fn an_agent_that_is_cut_off_stops_by_its_dead_man_or_its_plan() {
        let at = Nanos(4 * SECOND);
        let trouble = Trouble { way_ms: 20, cut_off: Some((at, 0)), ..Trouble::default() };
        let mut world = World::new(3, trouble, 3);
        world.run(120);
        assert!(over(&world).flatten().is_some_and(|why| why.contains("a-0")));
        let ended = world.lived[0].ended.unwrap();
        assert!(ended <= at + RunTimes::default().dead_man + Nanos(SECOND), "{ended}");
        assert!(!world.lived[0].deleted, "what was not collected stays");
    }
}
