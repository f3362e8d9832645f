//! Random numbers that can be repeated: one for each response and fault. Start reading at [`Draw`].
//!
//! The n-th number is a function of the seed and n alone (SplitMix64; Steele, Lea and Flood, OOPSLA
//! 2014), so that threads and processes that share a count share a stream without a lock.

/// Which response of the server, and which of its faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    /// From 0 on.
    pub(crate) number: u64,
    /// Place of the fault among those that are planted; each has a stream of its own.
    pub(crate) place: u64,
}

impl Draw {
    /// Uniformly distributed, above 0 and at most 1.
    pub(crate) fn unit(self, seed: u64) -> f64 {
        let bits = split_mix(seed ^ mixed(self.place), self.number) >> 11;
        (bits + 1) as f64 / (1u64 << 53) as f64
    }
}

/// The n-th number of the stream.
fn split_mix(seed: u64, n: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    mixed(seed.wrapping_add(GOLDEN.wrapping_mul(n.wrapping_add(1))))
}

fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference_implementation() {
        // The output of Vigna's splitmix64.c with the state 1234567.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([0, 1, 2, 3, 4].map(|n| split_mix(1_234_567, n)), expected);
    }

    #[test]
    fn faults_with_one_seed_draw_apart() {
        let same = (0..1000u64).filter(|&number| {
            let [first, second] = [0, 1].map(|place| Draw { number, place }.unit(1));
            (first < 0.5) == (second < 0.5)
        });
        // 500 expected with a standard deviation of 16: five of those on either side.
        assert!((420..580).contains(&same.count()));
    }
}
