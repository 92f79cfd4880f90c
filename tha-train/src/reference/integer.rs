//! The arithmetic of integer models by `FORMAT.md`, as plainly as possible: whole numbers without any limit of size (i128), rounded and
//! limited where the format says so. It knows nothing of layouts, rings and pairs, and says so where a number that a device keeps in 32 or 64 bits would
//! not fit them.

use std::collections::VecDeque;
use tha_core::RangePolicy;
use tha_core::integer::{ALPHA, FINE, FRACTION, Head, LIMIT, Model, Run};

/// An integer model that is given sample after sample.
#[derive(Clone, Debug)]
pub struct IntegerReference<'m> {
    model: Model<'m>,
    /// x, newest sample first, at most M.
    window: VecDeque<Vec<i128>>,
    /// All values of the runs, one behind the other.
    signals: Vec<i128>,
    last: Vec<i16>,
    taken: usize,
}

const WORD: i128 = 1 << 31;

/// A number that a device keeps in 32 bits.
fn word(value: i128) -> i128 {
    assert!((-WORD..WORD).contains(&value), "a sum overflows: {value}");
    value
}

/// value / 2^shift, rounded to the nearest, halves up.
fn round(value: i128, shift: u32) -> i128 {
    (value + ((1 << shift) >> 1)) >> shift
}

fn limit(value: i128, most: i128) -> i128 {
    value.clamp(-most, most)
}

/// Within 16 bits.
fn narrow(value: i128) -> i128 {
    value.clamp(i16::MIN.into(), i16::MAX.into())
}

impl<'m> IntegerReference<'m> {
    /// A model before its first sample.
    pub fn new(model: &Model<'m>) -> Self {
        let mut new =
            Self { model: *model, window: VecDeque::new(), signals: Vec::new(), last: Vec::new(), taken: 0 };
        new.reset();
        new
    }

    /// Forgets everything, as between two records.
    pub fn reset(&mut self) {
        let (runs, ..) = self.model.stage();
        self.window.clear();
        self.signals = vec![0; runs.iter().map(|run| run.rows() * run.count as usize).sum()];
        self.last = self.model.inputs().iter().map(|input| input.mean()).collect();
        self.taken = 0;
    }

    /// Takes a sample in physical units, what is not finite being held, and gives the outputs in counts once the model has settled.
    pub fn push(&mut self, u: &[f32]) -> Option<Vec<i32>> {
        let inputs = self.model.inputs();
        let counts =
            inputs.iter().zip(u).zip(&self.last).map(|((input, u), last)| input.count(u).unwrap_or(*last));
        let counts: Vec<i16> = counts.collect();
        self.push_counts(&counts)
    }

    /// The same in counts.
    pub fn push_counts(&mut self, counts: &[i16]) -> Option<Vec<i32>> {
        let (model, (runs, features, _)) = (self.model, self.model.stage());
        self.last = counts.to_vec();
        self.taken += 1;
        let clamps = features.is_empty() && model.range_policy() != RangePolicy::Pass;
        let most = if features.is_empty() { 1 << model.bits() } else { LIMIT.into() };
        let x = model.inputs().iter().zip(counts).map(|(input, &count)| {
            let count = if clamps { count.max(input.low).min(input.high) } else { count };
            limit(
                word(i128::from(count) * i128::from(input.gain) + i128::from(input.offset)) >> input.shift,
                most,
            )
        });
        self.window.push_front(x.collect());
        self.window.truncate(model.shape().memory);
        let mut first = 0;
        for run in runs {
            self.run(run, first);
            first += run.rows() * run.count as usize;
        }
        (self.taken >= model.settled()).then(|| self.outputs())
    }

    /// The signal at a position.
    fn signal(&self, position: usize) -> i128 {
        let shape = self.model.shape();
        match position.checked_sub(shape.inputs * shape.memory) {
            Some(value) => self.signals[value],
            None => self
                .window
                .get(position / shape.inputs)
                .map_or(0, |row| row[position % shape.inputs] << FRACTION),
        }
    }

    fn run(&mut self, run: &Run, first: usize) {
        let count = run.count as usize;
        let mean = if self.taken > self.model.settled() { 0 } else { (1 << ALPHA) / self.taken as i128 };
        let bound = (1 << 30) - 1;
        for k in 0..count {
            let u = self.signal(run.source as usize + k);
            let c = run.coefficients.map(i128::from);
            if run.kind == Run::AVERAGE {
                let s = &mut self.signals[first + k];
                *s = word(*s + round(c[0].max(mean) * (u - *s), ALPHA));
                continue;
            }
            let [c11, c12, b, c21, c22, d, e1, e2, _] = c;
            let at = |row: usize| first + row * count + k;
            let (one, two) = (self.signals[at(0)], self.signals[at(1)]);
            let set = |products: i128| {
                assert!(products.abs() < 1 << 63, "a sum of 64 bits overflows");
                limit(round(products, run.shift.into()), bound)
            };
            if run.kind == Run::FEEDING {
                self.signals[at(2)] = set(d * u + e1 * one + e2 * two);
            }
            self.signals[at(0)] = set(c11 * one + c12 * two + b * u);
            self.signals[at(1)] = set(c21 * one + c22 * two);
        }
    }

    /// Features in units of x, and what is beyond their range.
    fn features(&self) -> Vec<(i128, i128)> {
        let (_, records, maps) = self.model.stage();
        let plain = records.len() - maps.count();
        let one = |(k, feature): (usize, &tha_core::integer::FeatureRecord)| {
            let minus = match feature.minus {
                u16::MAX => 0,
                minus => self.signal(minus.into()),
            };
            let value = round(
                (self.signal(feature.plus.into()) - minus) * i128::from(feature.gain()),
                feature.shift(),
            );
            let value = limit(value, 1 << 30);
            let fine = if k < plain { 0 } else { FINE };
            let clamped = value.max(i128::from(feature.low) << fine).min(i128::from(feature.high) << fine);
            let used = if self.model.range_policy() == RangePolicy::Pass { value } else { clamped };
            let used = if k < plain { limit(used, 1 << self.model.bits()) } else { used };
            let width = (i128::from(feature.high) - i128::from(feature.low)).min(LIMIT.into());
            (used, limit((value - clamped) >> fine, width))
        };
        records.iter().enumerate().map(one).collect()
    }

    /// x of a head: what each of its rows is multiplied by.
    fn rows(&self, head: &Head<'_>, features: &[(i128, i128)]) -> Vec<i128> {
        if features.is_empty() {
            let lag = |row: &Vec<i128>| {
                head.inputs.iter().map(|&input| row[usize::from(input)]).collect::<Vec<_>>()
            };
            return self.window.iter().flat_map(lag).collect();
        }
        let (_, records, maps) = self.model.stage();
        let maps: Vec<_> = maps.collect();
        let plain = records.len() - maps.len();
        let one = 1i128 << self.model.bits();
        let mut x = Vec::new();
        for feature in head.features.iter() {
            let value = features[feature].0;
            let Some(nodes) = feature.checked_sub(plain).map(|map| maps[map]) else {
                x.push(value);
                continue;
            };
            let cell =
                nodes[1..nodes.len() - 1].iter().filter(|node| i128::from(node.at) << FINE <= value).count();
            let (from, to) = (i128::from(nodes[cell].at), i128::from(nodes[cell + 1].at));
            let bits = 128 - (to - from).leading_zeros() + FINE;
            let (from, to) = (from << FINE, to << FINE);
            let down = bits.saturating_sub(16);
            let come = (value - from).clamp(0, to - from) >> down;
            let product = come * i128::from(nodes[cell].inverse);
            assert!(product < 1 << 32, "a product of 32 bits overflows");
            let t = round(product, 15 + bits - down - self.model.bits()).min(one);
            let first = x.len();
            x.resize(first + nodes.len(), 0);
            (x[first + cell], x[first + cell + 1]) = (one - t, t);
        }
        x
    }

    fn outputs(&self) -> Vec<i32> {
        let features = self.features();
        let mut y = vec![0i128; self.model.shape().outputs];
        for head in self.model.heads() {
            let x = self.rows(&head, &features);
            let mut v: Option<Vec<i128>> = None;
            for (k, shifts) in head.shifts.iter().enumerate().rev() {
                let (left, right) = (head.ranks[k] as usize, head.ranks[k + 1] as usize);
                let t = |a: usize, b: usize| {
                    let (constant, coefficients) = head.sum(k, a, b).expect("there are so many");
                    let sum: i128 = coefficients.zip(&x).map(|(w, x)| i128::from(w) * x).sum();
                    word(i128::from(constant) + sum) >> shifts.sum
                };
                let row = |a: usize| match &v {
                    None => narrow(t(a, 0)),
                    Some(v) => {
                        let sum: i128 = (0..right).map(|b| t(a, b) * v[b]).sum();
                        narrow(round(word(sum), shifts.product.into()))
                    }
                };
                v = Some((0..left).map(row).collect());
            }
            for ((j, weight), v) in head.outputs().zip(head.weights).zip(v.unwrap_or_default()) {
                y[j] = word(y[j] + i128::from(*weight) * v);
            }
        }
        let (linear, shifts) = self.model.linear();
        if self.model.range_policy() == RangePolicy::Extend {
            for ((y, row), &shift) in y.iter_mut().zip(linear.chunks(features.len().max(1))).zip(shifts) {
                let sum: i128 =
                    row.iter().zip(&features).map(|(w, (_, beyond))| i128::from(*w) * beyond).sum();
                *y = word(*y + round(word(sum), shift));
            }
        }
        y.into_iter().map(|y| y as i32).collect()
    }
}
