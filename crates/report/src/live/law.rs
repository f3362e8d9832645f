//! The law by which requests are due, in a few words. Start reading at [`law_words`].

use record::{Pacing, Spread};

use crate::figures::counted;

/// `open loop, Poisson 5k/s`.
pub(super) fn law_words(pacing: &Pacing) -> String {
    let law = match pacing {
        Pacing::Closed => return "closed loop".to_owned(),
        Pacing::Think { pause, spread: Spread::Constant } => {
            return format!("closed loop, think {pause}");
        }
        Pacing::Think { pause, .. } => return format!("closed loop, think {pause} on average"),
        Pacing::Constant { rate } => format!("constant {rate}"),
        Pacing::Poisson { rate } => format!("Poisson {rate}"),
        Pacing::Jitter { rate } => format!("jitter {rate}"),
        Pacing::Ramp { from, to, over } => format!("ramp {from} to {to} in {over}"),
        Pacing::Stages { stages } => counted(stages.len() as u64, "stage"),
        Pacing::Replay { instants } => {
            format!("replay of {}", counted(instants.len() as u64, "instant"))
        }
    };
    format!("open loop, {law}")
}

#[cfg(test)]
mod tests {
    use units::{Nanos, PerSecond};

    use super::*;

    #[test]
    fn a_law_is_told_from_a_closed_loop_by_its_first_word() {
        let rate = PerSecond(5000.0);
        let pause = Nanos::from_millis(100);
        let cases = [
            (Pacing::Closed, "closed loop"),
            (Pacing::Think { pause, spread: Spread::Constant }, "closed loop, think 100ms"),
            (Pacing::Poisson { rate }, "open loop, Poisson 5000/s"),
            (Pacing::Stages { stages: vec![] }, "open loop, 0 stages"),
        ];
        for (pacing, words) in cases {
            assert_eq!(law_words(&pacing), words);
            assert_eq!(words.starts_with("open"), pacing.is_open());
        }
    }
}
