//! Delivery: a network over the coordinates of a fit as one over the coordinates of a model file.
//!
//! In the file a plain feature has one row in every core; behind all of these a mapped one has a row for each of its nodes: the
//! value of linear part and ramps there. Between the nodes both are linear, so that the two rows beside a value give it exactly (hat
//! functions). All constants of the standardisation go into the rows of the constant and of the nodes.

use super::Stage;
use crate::network::{Core, Network};

impl Stage {
    /// The network of some inputs over the rows of a model file that has the values of `network` over
    /// [`Staged::of_inputs`](super::Staged::of_inputs).
    pub fn deliver(&self, network: &Network, inputs: &[usize]) -> Network {
        Network { cores: network.cores.iter().map(|core| self.deliver_core(core, inputs)).collect() }
    }

    fn deliver_core(&self, core: &Core, inputs: &[usize]) -> Core {
        let features: Vec<usize> = self.features_of(inputs).collect();
        let rows = |feature: &usize| self.known[*feature].nodes.len().max(1);
        let q = 1 + features.iter().map(rows).sum::<usize>();
        let mut delivered = Core::zeros(core.left, q, core.right);
        for a in 0..core.left {
            let from = |i: usize| &core.data[(a * core.q + i) * core.right..][..core.right];
            let mut add = |i: usize, factor: f64, values: &[f64]| {
                let to = &mut delivered.data[(a * q + i) * core.right..][..core.right];
                to.iter_mut().zip(values).for_each(|(to, value)| *to += factor * value);
            };
            add(0, 1.0, from(0));
            let plain = features.iter().filter(|feature| self.known[**feature].nodes.is_empty()).count();
            // Mapped features stand behind the plain ones.
            let (mut plain_row, mut row, mut ramp) = (1, 1 + plain, 1 + features.len());
            for (k, &feature) in features.iter().enumerate() {
                let known = &self.known[feature];
                if known.nodes.is_empty() {
                    add(0, known.unit.apply(0.0), from(1 + k));
                    add(plain_row, known.unit.gain, from(1 + k));
                    plain_row += 1;
                }
                for node in known.nodes.iter().copied().map(f64::from) {
                    add(row, known.unit.apply(node), from(1 + k));
                    for (j, of) in known.ramps.iter().enumerate() {
                        add(row, of.value(node), from(ramp + j));
                    }
                    row += 1;
                }
                ramp += known.ramps.len();
            }
        }
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::super::Staged;
    use super::super::maps::cell;
    use super::super::rows::tests::noise;
    use crate::network::{Features, Network, Normal};
    use nalgebra::{DMatrix, DVector};
    use tha_core::RangePolicy;

    /// The rows of a model file: features as they are, and hat functions at the nodes of those with a map.
    fn delivered(samples: &Staged<'_>, inputs: &[usize]) -> DMatrix<f64> {
        let (stage, count) = (samples.stage(), samples.rows.len());
        let mut columns = vec![DVector::from_element(count, 1.0)];
        for feature in stage.delivered_features(inputs) {
            let mut z = DVector::zeros(count);
            samples.read(feature, &samples.rows, z.as_mut_slice());
            z.apply(|z| *z = stage.seen(feature)(*z));
            let nodes = &stage.known[feature].nodes;
            let hat = |k: usize, z: f64| match cell(nodes, z) {
                (at, part) if at == k => 1.0 - part,
                (at, part) if at + 1 == k => part,
                _ => 0.0,
            };
            columns.extend((0..nodes.len()).map(|k| z.map(|z| hat(k, z))));
            columns.extend(nodes.is_empty().then_some(z));
        }
        DMatrix::from_columns(&columns)
    }

    #[test]
    fn both_forms_have_the_same_values_inside_and_outside_of_the_range() {
        let bases = ["lags:3", "levels:4", "differences:4", "kautz:0.6,0.5,2"];
        let policies = [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend];
        for (basis, pieces) in bases.iter().flat_map(|basis| [(basis, None), (basis, Some(5))]) {
            for (beyond, inputs) in policies.iter().flat_map(|b| [(*b, &[0, 1][..]), (*b, &[1])]) {
                let (mut data, stage) = noise(basis, pieces, beyond);
                // The second record leaves the range that the stage has seen, far and often.
                data.u.iter_mut().flat_map(|u| &mut u[200..]).for_each(|u| *u = 10.0 + 5.0 * (*u - 10.0));
                let samples = stage.clone().rows(&data, data.scored_rows(stage.bank.history() + 1));
                let x = samples.of_inputs(inputs);
                let network = Network::random(2, x.ncols(), &[3, 2], &mut Normal::new(7));
                let delivered = stage.deliver(&network, inputs);
                let (fit, device) =
                    (network.evaluate(&x), delivered.evaluate(&self::delivered(&samples, inputs)));
                let error = (&fit - &device).amax() / fit.amax();
                assert!(error < 1e-12, "{basis} {pieces:?} {beyond:?}: {error}");
            }
        }
    }

    #[test]
    fn a_mapped_feature_owns_a_row_for_each_node() {
        let (_, stage) = noise("levels:1", Some(4), RangePolicy::Clamp);
        let network = Network::random(1, 1 + 4 * 5, &[2], &mut Normal::new(1));
        let delivered = stage.deliver(&network, &[0, 1]);
        // Four features: u and one average of two inputs; lo, five knots, hi.
        assert_eq!(stage.known[3].nodes.len(), 7);
        assert!(stage.known[3].nodes.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(delivered.q(), 1 + 4 * 7);
    }
}
