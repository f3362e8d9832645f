//! The closed loop: a connection asks again as soon as it is free. Owns nothing but the rule; must
//! not know why a connection became free. Start reading at [`Closed`].
//!
//! The rate is the server's: while it stalls, nobody asks. Hence response time equals service time
//! but for connecting and for the generator's own delay.

use units::Nanos;

use super::Law;

/// Due as soon as there is a free slot.
pub(crate) struct Closed;

impl Law for Closed {
    fn due(&self, free: Nanos) -> Nanos {
        free
    }

    fn take(&mut self, free: Nanos) -> Nanos {
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_due_when_its_slot_is_free() {
        let mut law = Closed;
        for free in [Nanos::ZERO, Nanos::from_millis(3)] {
            assert_eq!(law.due(free), free);
            assert_eq!(law.take(free), free);
        }
    }
}
