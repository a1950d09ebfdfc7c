//! How numbers spread between the smallest and the largest, in one pass and with bounded memory.
//!
//! The first numbers are kept. When there are more, they are counted in bins of one width, which
//! doubles whenever a number lies outside of them: so at least about half of the bins are between
//! the smallest and the largest number.

/// Numbers that were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    few: Vec<f64>,
    bins: Option<Bins>,
    ends: Option<(f64, f64)>,
    count: u64,
}

/// Counts of numbers from a start on.
#[derive(Clone, Debug)]
struct Bins {
    start: f64,
    width: f64,
    counts: Vec<u64>,
}

impl Spread {
    /// Notes a number. One that is not finite has no place.
    pub(super) fn note(&mut self, number: f64) {
        if !number.is_finite() {
            return;
        }
        // The difference of any two is finite now.
        let number = number / SCALE;
        self.count += 1;
        let (min, max) = self.ends.unwrap_or((number, number));
        self.ends = Some((min.min(number), max.max(number)));
        if let Some(bins) = &mut self.bins {
            return bins.note(number, 1);
        }
        self.few.push(number);
        if self.few.len() == BINS {
            let mut bins = Bins::between(min.min(number), max.max(number));
            for number in self.few.drain(..) {
                bins.note(number, 1);
            }
            self.few = Vec::new();
            self.bins = Some(bins);
        }
    }

    /// How many numbers were noted.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// How many of the numbers are in each of the parts between the smallest and the largest.
    /// `None` if these are the same.
    pub(super) fn parts(&self) -> Option<[u64; PARTS]> {
        let (min, max) = self.ends.filter(|(min, max)| min < max)?;
        let mut parts = [0; PARTS];
        let mut note = |number: f64, count: u64| {
            let part = (number.clamp(min, max) - min) / (max - min) * 8.0;
            if let Some(part) = parts.get_mut(floor(part).min(PARTS - 1)) {
                *part += count;
            }
        };
        for number in &self.few {
            note(*number, 1);
        }
        if let Some(bins) = &self.bins {
            for (center, count) in bins.centers() {
                note(center, count);
            }
        }
        Some(parts)
    }
}

impl Bins {
    /// Bins of which half are between the two.
    fn between(min: f64, max: f64) -> Self {
        let width = (max - min) / HALF;
        // A bin of less than this would not differ from its neighbour.
        let least = (min.abs().max(max.abs()) * WIDTH_LEAST).max(f64::MIN_POSITIVE);
        Self {
            start: min,
            width: width.max(least),
            counts: vec![0; BINS],
        }
    }

    fn note(&mut self, number: f64, count: u64) {
        while number < self.start {
            self.start -= self.width * (2.0 * HALF);
            self.double(BINS / 2);
        }
        while (number - self.start) / self.width >= 2.0 * HALF {
            self.double(0);
        }
        let bin = floor((number - self.start) / self.width);
        if let Some(bin) = self.counts.get_mut(bin) {
            *bin += count;
        }
    }

    /// Makes one of each two bins. They are the half from this position on then.
    fn double(&mut self, from: usize) {
        let mut counts = vec![0; BINS];
        let pairs = self.counts.chunks(2).map(|pair| pair.iter().sum::<u64>());
        for (bin, count) in counts.iter_mut().skip(from).zip(pairs) {
            *bin = count;
        }
        self.counts = counts;
        self.width *= 2.0;
    }

    /// The middle of each bin, with its count.
    fn centers(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.counts.iter().zip(0_u32..);
        counts.map(|(count, bin)| {
            let center = (f64::from(bin) + 0.5).mul_add(self.width, self.start);
            (center, *count)
        })
    }
}

/// A number that is at least 0 without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates"
)]
const fn floor(number: f64) -> usize {
    number as usize
}

/// The bars of a histogram.
pub(super) const PARTS: usize = 8;
/// Each bar has 32 of them or more.
const BINS: usize = 512;
const HALF: f64 = 256.0;
const SCALE: f64 = 4096.0;
/// A few steps between neighbouring doubles.
const WIDTH_LEAST: f64 = 1e-15;

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(numbers: impl IntoIterator<Item = f64>) -> Option<[u64; PARTS]> {
        let mut spread = Spread::default();
        for number in numbers {
            spread.note(number);
        }
        spread.parts()
    }

    #[test]
    fn few_numbers_are_counted_exactly() {
        let numbers = [0.0, 1.0, 1.0, 3.5, 7.99, 8.0, f64::NAN, f64::INFINITY];
        assert_eq!(parts(numbers), Some([1, 2, 0, 1, 0, 0, 0, 2]));
        assert_eq!(parts([5.0, 5.0]), None);
        assert_eq!(parts([]), None);
    }

    #[test]
    fn many_numbers_keep_their_shape_in_any_order() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for scale in [1e-300, 1.0, 1e17, 1e304] {
            let mut numbers: Vec<_> = (0..8_000).map(|it| f64::from(it) * scale).collect();
            for order in 0..3 {
                match order {
                    0 => {}
                    1 => numbers.reverse(),
                    _ => random.shuffle(&mut numbers),
                }
                let parts = parts(numbers.iter().copied()).expect("they differ");
                assert_eq!(parts.iter().sum::<u64>(), 8_000);
                for count in parts {
                    assert!((935..=1_065).contains(&count), "{scale} {order}: {parts:?}");
                }
            }
        }
    }

    #[test]
    fn one_number_far_away_takes_the_last_part() {
        for far in [1e6, 1e17, f64::MAX] {
            let near = (0..1_000).map(f64::from);
            let expected = Some([1_000, 0, 0, 0, 0, 0, 0, 1]);
            assert_eq!(parts(near.clone().chain([far])), expected, "{far}");
            assert_eq!(parts([far].into_iter().chain(near)), expected, "{far}");
            let below = parts((0..1_000).map(f64::from).chain([-far]));
            assert_eq!(below, Some([1, 0, 0, 0, 0, 0, 0, 1_000]), "{far}");
        }
    }

    #[test]
    fn numbers_that_differ_little_have_a_place() {
        let ticks = (0..1_000).map(|it| 6.3e17 + f64::from(it) * 128.0);
        let identifiers = (0..1_600).map(|it| 9_007_199_254_740_992.0 + f64::from(it));
        for count in parts(identifiers).expect("they differ") {
            assert!((190..=210).contains(&count), "{count}");
        }
        let of_ticks = parts(ticks).expect("they differ");
        assert_eq!(of_ticks.iter().sum::<u64>(), 1_000);
        let ends = [f64::MIN, f64::MAX].repeat(300);
        assert_eq!(parts(ends), Some([300, 0, 0, 0, 0, 0, 0, 300]));
        let same = [7.0].repeat(600).into_iter().chain([8.0]);
        assert_eq!(parts(same), Some([600, 0, 0, 0, 0, 0, 0, 1]));
    }
}
