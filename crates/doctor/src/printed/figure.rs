//! Owns a number as it was printed: which true numbers could have been printed so. Every identity is judged on
//! these intervals, so that rounding alone never makes a finding. Start reading at [`Figure`].

/// A number that was printed, with the range of numbers that round to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Smallest number that is printed like this.
    pub low: f64,
    /// The number as printed.
    pub value: f64,
    /// Largest number that is printed like this.
    pub high: f64,
}

/// What a decimal fraction loses on its way through binary, as a share of the number.
const BINARY_SHARE: f64 = 1e-9;

impl Figure {
    /// A count: nothing was rounded.
    pub fn exact(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// A number rounded to the nearest multiple of `step`.
    pub fn rounded(value: f64, step: f64) -> Self {
        Self::between(value - step / 2.0, value, value + step / 2.0)
    }

    /// A number of which only whole multiples of `step` are printed, whether rounded or cut off.
    pub fn rounded_or_cut(value: f64, step: f64) -> Self {
        Self::between(value - step / 2.0, value, value + step)
    }

    /// A number printed with that many significant digits.
    pub fn significant(value: f64, digits: i32) -> Self {
        let step = if value > 0.0 {
            10f64.powi(value.log10().floor() as i32 + 1 - digits)
        } else {
            10f64.powi(-digits)
        };
        Self::rounded(value, step)
    }

    fn between(low: f64, value: f64, high: f64) -> Self {
        let slack = value.abs() * BINARY_SHARE;
        Self { low: (low - slack).max(0.0), value, high: high + slack }
    }

    /// The product.
    pub fn times(self, other: Self) -> Self {
        Self {
            low: self.low * other.low,
            value: self.value * other.value,
            high: self.high * other.high,
        }
    }

    /// The quotient; `None` where the divisor may be 0.
    pub fn over(self, other: Self) -> Option<Self> {
        (other.low > 0.0).then(|| Self {
            low: self.low / other.high,
            value: self.value / other.value,
            high: self.high / other.low,
        })
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            value: self.value + other.value,
            high: self.high + other.high,
        }
    }

    /// The same in another unit.
    pub fn scaled(self, scale: f64) -> Self {
        self.times(Self::exact(scale))
    }

    /// Whether both can be the same number.
    pub fn may_equal(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether it is surely smaller.
    pub fn is_below(self, other: Self) -> bool {
        self.high < other.low
    }

    /// Whether it is known to that share of itself or better.
    pub fn is_within(self, share: f64) -> bool {
        self.value > 0.0 && (self.high - self.low) <= share * self.value
    }

    /// Whether it lies surely in the range.
    pub fn lies_in(self, range: &std::ops::RangeInclusive<f64>) -> bool {
        range.contains(&self.value) && range.contains(&self.low.max(*range.start()).min(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_hundredth_is_an_interval() {
        let printed = Figure::rounded(0.01, 0.01);
        assert!(printed.low < 0.005_001 && printed.high > 0.014_999, "{printed:?}");
        let zero = Figure::rounded(0.0, 0.01);
        assert_eq!(zero.low, 0.0, "no time is negative");
        assert!(Figure::exact(10.0).over(zero).is_none());
    }

    #[test]
    fn intervals_carry_through_products_and_quotients() {
        let time = Figure::rounded(0.072, 0.001);
        let rate = Figure::exact(2000.0).over(time).unwrap();
        assert!(rate.low < 27_813.7 && 27_813.7 < rate.high, "{rate:?}");
        assert!(rate.may_equal(Figure::rounded(27_813.7, 0.01)));
        assert!(rate.times(time).may_equal(Figure::exact(2000.0)));
        assert!(Figure::exact(1.0).is_below(Figure::rounded(1.5, 0.1)));
        assert!(!Figure::exact(1.46).is_below(Figure::rounded(1.5, 0.1)));
    }

    #[test]
    fn significant_digits_scale_with_the_number() {
        let bytes = Figure::significant(3.361e6, 6);
        assert!((bytes.high - bytes.low - 10.0).abs() < 0.1, "{bytes:?}");
        assert!(bytes.is_within(1e-5) && !bytes.is_within(1e-6));
    }
}
