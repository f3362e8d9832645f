//! Figures of the same load made in two ways, in blocks: printed with the ratio and its interval. Start reading at [`show`].

use std::error::Error;

/// A figure of a load, and its name.
pub type Figure<T> = (&'static str, fn(&T) -> f64);

/// Prints a figure of both ways, by their names, and its ratio, paired by block.
pub fn show<T>(
    (name, of): &Figure<T>,
    names: [&str; 2],
    pairs: &[(T, T)],
) -> Result<(), Box<dyn Error>> {
    let pairs: Vec<(f64, f64)> = pairs.iter().map(|(one, two)| (of(one), of(two))).collect();
    let paired = stats::Paired::of(&pairs)?;
    let interval = paired.interval.ok_or("one block has no interval: ask for more")?;
    let median = |side: fn(&(f64, f64)) -> f64| {
        stats::median(&pairs.iter().map(side).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    println!(
        "{name:<26} {} {:>10.3}   {} {:>10.3}   ratio {:.4} [{:.4}, {:.4}]",
        names[0],
        median(|pair| pair.0),
        names[1],
        median(|pair| pair.1),
        paired.ratio,
        interval.low,
        interval.high,
    );
    Ok(())
}

/// Which way of a block comes first: a coin toss without a random number generator, a bit of a hash of its number.
pub fn first_comes_first(block: u32) -> bool {
    (block.wrapping_mul(2_654_435_761) >> 16) & 1 == 0
}
