//! How many children a server keeps in reserve: Apache's rule, once a second, as a pure function of
//! counts. Start reading at [`SpareRule::maintain`].
//!
//! Source: `perform_idle_server_maintenance` in server/mpm/prefork/prefork.c, worker.c and event.c of
//! httpd 2.4, which are the same rule over idle processes and idle threads.

/// The most children that start in one second (MAX_SPAWN_RATE).
const SPAWN_RATE_MAX: usize = 32;

/// After a reload, this many shortages do not double the rate (`hold_off_on_exponential_spawning`), because old
/// children are still ending and new ones have only begun.
const ROUNDS_HELD_OFF: usize = 10;

/// Keeps the number of idle workers between two bounds.
#[derive(Debug, Clone)]
pub(crate) struct SpareRule {
    /// With fewer idle workers, children start.
    spare_min: usize,
    /// With more, one child ends.
    spare_max: usize,
    /// Children that the next shortage starts: 1, 2, 4 ... 32.
    spawn_rate: usize,
    /// Shortages left that do not double the rate.
    rounds_held_off: usize,
}

/// The input of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpareCounts {
    /// Workers that wait for a connection or are starting. Those that start were started a second
    /// ago, so more would not help.
    pub(crate) idle: usize,
    /// Children that may still start before the limit is reached.
    pub(crate) room: usize,
}

/// What the parent is to do in this second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintain {
    /// Nothing: the number of idle workers is within bounds.
    Nothing,
    /// End one child in an orderly way.
    ReapOne,
    /// Start this many children; 0 if the limit is reached.
    Spawn(usize),
}

impl SpareRule {
    /// The rule when the server starts.
    pub(crate) fn new(spare_min: usize, spare_max: usize) -> Self {
        Self { spare_min, spare_max, spawn_rate: 1, rounds_held_off: 0 }
    }

    /// To be called after a reload.
    pub(crate) fn hold_off(&mut self) {
        self.rounds_held_off = ROUNDS_HELD_OFF;
    }

    /// To be called once a second, unless a child ended in it.
    pub(crate) fn maintain(&mut self, counts: SpareCounts) -> Maintain {
        if counts.idle > self.spare_max {
            self.spawn_rate = 1;
            Maintain::ReapOne
        } else if counts.idle >= self.spare_min {
            self.spawn_rate = 1;
            Maintain::Nothing
        } else if counts.room == 0 {
            self.spawn_rate = 1;
            Maintain::Spawn(0)
        } else {
            let children = counts.room.min(self.spawn_rate);
            match self.rounds_held_off {
                0 => self.spawn_rate = (self.spawn_rate * 2).min(SPAWN_RATE_MAX),
                _ => self.rounds_held_off -= 1,
            }
            Maintain::Spawn(children)
        }
    }

    /// The most children that the next shortage starts.
    pub(crate) fn spawn_rate(&self) -> usize {
        self.spawn_rate
    }

    /// A child ended for lack of resources (APEXIT_CHILDSICK): start again with one.
    pub(crate) fn child_was_sick(&mut self) {
        self.spawn_rate = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children with one worker each, in virtual time: each call of `maintain` is a second.
    struct Children {
        rule: SpareRule,
        children: usize,
        children_max: usize,
    }

    impl Children {
        /// 5 at the start, 5 to 10 idle, at most 150: the settings of many courses on Apache.
        fn new() -> Self {
            Self { rule: SpareRule::new(5, 10), children: 5, children_max: 150 }
        }

        /// The children after one second with this many busy ones.
        fn second(&mut self, busy: usize) -> usize {
            let busy = busy.min(self.children);
            let room = self.children_max - self.children;
            match self.rule.maintain(SpareCounts { idle: self.children - busy, room }) {
                Maintain::Nothing => {}
                Maintain::ReapOne => self.children -= 1,
                Maintain::Spawn(n) => self.children += n,
            }
            self.children
        }

        fn seconds(&mut self, busy: usize, n: usize) -> Vec<usize> {
            (0..n).map(|_| self.second(busy)).collect()
        }
    }

    #[test]
    fn under_load_children_come_1_2_4_to_32_a_second_up_to_the_limit() {
        let mut children = Children::new();
        assert_eq!(
            children.seconds(usize::MAX, 11),
            [6, 8, 12, 20, 36, 68, 100, 132, 150, 150, 150],
        );
    }

    #[test]
    fn after_load_one_idle_child_ends_each_second_down_to_the_maximum() {
        let mut children = Children::new();
        children.seconds(usize::MAX, 4);
        assert_eq!(children.seconds(0, 12), [19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10]);
    }

    #[test]
    fn a_second_without_shortage_begins_again_with_one() {
        let mut children = Children::new();
        assert_eq!(children.seconds(usize::MAX, 3), [6, 8, 12]);
        assert_eq!(children.second(5), 12);
        assert_eq!(children.seconds(usize::MAX, 3), [13, 15, 19]);
    }

    #[test]
    fn the_limit_and_a_sick_child_begin_again_with_one() {
        let mut children = Children::new();
        children.children_max = 8;
        assert_eq!(children.seconds(usize::MAX, 3), [6, 8, 8]);
        children.children_max = 150;
        assert_eq!(children.seconds(usize::MAX, 2), [9, 11]);
        children.rule.child_was_sick();
        assert_eq!(children.seconds(usize::MAX, 2), [12, 14]);
    }

    #[test]
    fn after_a_reload_ten_shortages_start_one_child_each() {
        let mut children = Children::new();
        children.rule.hold_off();
        assert_eq!(children.seconds(usize::MAX, 10), [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(children.seconds(usize::MAX, 3), [16, 18, 22]);
    }

    #[test]
    fn dead_children_are_made_up_for_by_the_spare_rule_alone() {
        let mut children = Children::new();
        children.children = 2;
        assert_eq!(children.seconds(0, 4), [3, 5, 5, 5]);
    }

    #[test]
    fn threads_are_counted_and_children_started() {
        // worker: 3 children of 25 threads, 75 to 250 idle, at most 16 children.
        let mut rule = SpareRule::new(75, 250);
        let counts = |idle, children: usize| SpareCounts { idle, room: 16 - children };
        assert_eq!(rule.maintain(counts(75, 3)), Maintain::Nothing);
        assert_eq!(rule.maintain(counts(74, 3)), Maintain::Spawn(1));
        assert_eq!(rule.maintain(counts(50, 4)), Maintain::Spawn(2));
        assert_eq!(rule.maintain(counts(251, 15)), Maintain::ReapOne);
        assert_eq!(rule.maintain(counts(0, 16)), Maintain::Spawn(0));
    }
}
