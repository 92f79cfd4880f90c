use super::*;
use crate::network::Normal;
use crate::quantize::QuantizeParams;
use crate::synth::{Kind, SynthParams, generate};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slow averages behind a bounded map, and noise.
fn plant(samples: usize, inputs: usize, noise: f64, seed: u64) -> Dataset {
    let mut normal = Normal::new(seed);
    let u: Vec<Vec<f64>> = (0..inputs).map(|_| (0..samples).map(|_| normal.draw()).collect()).collect();
    let mut slow = vec![0.0; inputs];
    let y = (0..samples).map(|t| {
        slow.iter_mut().zip(&u).for_each(|(slow, u)| *slow += 0.2 * (u[t] - *slow));
        (3.0 * slow[0]).tanh() + slow[1] + noise * normal.draw()
    });
    let y = y.collect();
    Dataset::new("plant", u, vec![y])
}

fn few() -> AutoParams {
    AutoParams::new().trials(90)
}

#[test]
fn it_is_better_than_linear_and_says_how_good() {
    let (train, test) = (plant(1500, 2, 0.05, 1), plant(1500, 2, 0.05, 2));
    let made = few().fit(&train, &Silent).unwrap();
    let found = made.model.evaluate(&test).nrmse;
    let linear = made.linear.as_ref().unwrap();
    assert!(found < 0.7 * linear.error && !made.nothing_better, "{found} {}", linear.error);
    assert!(
        (found - made.nested.error).abs() < 3.0 * made.nested.standard_error + 0.03,
        "{found} {:?}",
        made.nested.blocks
    );
    assert!(made.model.to_bytes().unwrap().len() <= AutoParams::BUDGET_FLASH);
}

#[test]
fn noise_is_noise() {
    let mut data = plant(800, 3, 0.0, 3);
    let mut normal = Normal::new(4);
    data.y[0].iter_mut().for_each(|y| *y = normal.draw());
    let made = few().trials(30).fit(&data, &Silent).unwrap();
    let Honest { error, standard_error, .. } = made.nested;
    assert!((error - 1.0).abs() < 2.0 * standard_error, "{error} {standard_error}");
}

#[test]
fn an_output_that_never_moves_ends_the_search() {
    let mut data = plant(400, 2, 0.0, 3);
    data.y[0].fill(2.5);
    let made = few().fit(&data, &Silent).unwrap();
    assert!(made.model.evaluate(&data).rmse < 1e-6);
}

#[test]
fn the_same_settings_give_the_same_bytes_and_heads_on_subsets_take_part() {
    let data = plant(600, 6, 0.3, 5);
    let params = AutoParams::new().trials(6).heads(4);
    let made = params.fit(&data, &Silent).unwrap();
    assert_eq!(made.tried.len(), 10);
    let again = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let again = again.install(|| params.fit(&data, &Silent).unwrap());
    assert_eq!(made.model.to_bytes().unwrap(), again.model.to_bytes().unwrap());
}

/// Says stop once: at the third look after the fifth setting was tried.
struct Short(AtomicUsize);

impl Progress for Short {
    fn report(&self, event: &Event<'_>) {
        if let Event::Tried { done: 5, .. } = event {
            self.0.store(3, Ordering::Relaxed);
        }
    }

    fn stop(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

#[test]
fn what_was_skipped_and_cut_off_can_be_repeated() {
    let data = plant(600, 6, 0.3, 5);
    // On all inputs numbers 0, 1 and 3 to 5 are tried, 6 and 7 are skipped and the search is cut off; then heads, with numbers from 6 on.
    let params = AutoParams::new().trials(20).heads(5).skip(vec![2, 6, 7, 9]);
    let cut = params.fit(&data, &Short(AtomicUsize::new(0))).unwrap();
    let Recipe { trials, heads, skip, .. } = cut.recipe.clone();
    assert_eq!((trials, heads, &skip[..]), (5, 5, &[2, 6, 7, 9][..]));
    let again = AutoParams::new().trials(trials).heads(heads).skip(skip);
    let again = again.fit(&data, &Silent).unwrap();
    assert_eq!(again.tried.len(), 7);
    assert_eq!(cut.model.to_bytes().unwrap(), again.model.to_bytes().unwrap());
    // Fewer heads are the first of more.
    let fewer = AutoParams::new().trials(trials).heads(3).skip(vec![2]).fit(&data, &Silent).unwrap();
    let more = AutoParams::new().trials(trials).heads(5).skip(vec![2]).fit(&data, &Silent).unwrap();
    let settings =
        |made: &AutoOutcome| made.tried.iter().map(|tried| tried.setting.clone()).collect::<Vec<_>>();
    assert_eq!(settings(&fewer), settings(&more)[..8]);
}

#[test]
fn a_polynomial_of_lags_is_found_by_the_plain_fit() {
    let made =
        SynthParams { memory: 3, degree: 2, samples: 600, noise: 0.01, ..SynthParams::new(Kind::Volterra) };
    let data = generate(&made).unwrap();
    let auto = few().fit(&data.train, &Silent).unwrap();
    assert_eq!(auto.recipe.plain, Some((3, 2)));
    assert!(auto.model.evaluate(&data.test).nrmse < 0.01);
    // One for which there was no time has a number as settings have.
    let number = auto.tried.len() + auto.failures.len();
    let skipped = few().skip(vec![number]).fit(&data.train, &Silent).unwrap();
    assert_eq!((skipped.recipe.plain, skipped.recipe.skip), (None, vec![number]));
}

#[test]
fn a_polynomial_is_found_where_averages_predict_as_well_as_lags() {
    // Slow inputs and a cube of the last four samples: on blocks, quadratics of averages are level with those of lags.
    let mut normal = Normal::new(10);
    let mut slow = |_| {
        let mut u = 0.0;
        (0..2000).map(|_| (u += 0.2 * (normal.draw() - u), u).1).collect::<Vec<f64>>()
    };
    let u: Vec<Vec<f64>> = (0..2).map(&mut slow).collect();
    let sum = |t: usize, weights: [f64; 4]| {
        (0..8).map(|k| if t >= k / 2 { weights[k / 2] * u[k % 2][t - k / 2] } else { 0.0 }).sum::<f64>()
    };
    let mut noise = Normal::new(11);
    let clean = |t: usize| sum(t, [1.0, -2.0, 3.0, -1.5]).powi(3) + sum(t, [1.0, 1.0, -1.0, 2.0]);
    let y = (0..2000).map(|t| clean(t) + 0.02 * noise.draw());
    let data = Dataset::new("cube", u.clone(), vec![y.collect()]);
    let made = few().fit(&data, &Silent).unwrap();
    assert_eq!(made.recipe.plain, Some((4, 3)), "{:?}", made.nested.blocks);
    assert!(made.nested.error < 0.05, "{}", made.nested.error);
}

#[test]
fn sharp_resonances_are_found_in_short_records() {
    // They ring for 700 samples, until a thousandth is left: longer than the record.
    let ringing = |seed: u64| {
        let mut normal = Normal::new(seed);
        let (mut one, mut other) = ((0.0, 0.0), (0.0, 0.0));
        let u: Vec<f64> = (0..600).map(|_| normal.draw()).collect();
        let mode = |(last, before): &mut (f64, f64), modulus: f64, angle: f64, u: f64| {
            let next = 2.0 * modulus * libm::cos(angle) * *last - modulus * modulus * *before + u;
            (*last, *before) = (next, *last);
            next
        };
        let y = u
            .iter()
            .map(|&u| mode(&mut one, 0.99, 0.3, u) + mode(&mut other, 0.98, 0.8, u) + 0.1 * normal.draw());
        let y = y.collect();
        Dataset::new("ringing", vec![u], vec![y])
    };
    let made = few().trials(30).fit(&ringing(8), &Silent).unwrap();
    let test = made.model.evaluate(&ringing(9));
    assert!(test.nrmse < 0.1 && test.samples > 400, "{} on {}", test.nrmse, test.samples);
    assert!(made.nested.error < 0.1 && made.linear.unwrap().error > 0.3, "{}", made.nested.error);
}

#[test]
fn a_polynomial_that_is_not_the_truth_does_not_end_the_search() {
    // A product of two inputs, and a step of a third, which maps follow.
    let mut normal = Normal::new(12);
    let u: Vec<Vec<f64>> = (0..3).map(|_| (0..1500).map(|_| normal.draw()).collect()).collect();
    let y = (0..1500).map(|t| u[0][t] * u[1][t] + 0.5 * (6.0 * u[2][t]).tanh() + 0.05 * normal.draw());
    let data = Dataset::new("step", u.clone(), vec![y.collect()]);
    let made = few().fit(&data, &Silent).unwrap();
    assert_eq!(made.recipe.plain, None);
    assert!(made.nested.error < 0.12, "{}", made.nested.error);
}

#[test]
fn budgets_are_kept_or_refused() {
    let data = plant(600, 6, 0.3, 6);
    let params = AutoParams::new().trials(8).heads(2);
    let free = params.fit(&data, &Silent).unwrap().model.to_bytes().unwrap().len();
    let small = params.clone().budget_flash(2500).fit(&data, &Silent).unwrap().model;
    assert!(small.to_bytes().unwrap().len() <= 2500, "{free}");
    let budget = 9 * free / 10;
    let whole = params.clone().budget_flash(budget).integers(QuantizeParams::default());
    let whole = whole.fit(&data, &Silent).unwrap();
    let (bytes, before) = (whole.quantized.unwrap().flash_after, whole.model.to_bytes().unwrap().len());
    assert!(bytes <= budget && before > budget, "{bytes} of integers for {before} in a budget of {budget}");
    let refusal = params.budget_flash(100).fit(&data, &Silent).unwrap_err().to_string();
    assert!(refusal.contains("`budget_flash`: 100 is out of range; expected about"), "{refusal}");
}

#[test]
fn a_wish_to_stop_delivers_the_best_so_far() {
    struct Impatient(AtomicUsize);
    impl Progress for Impatient {
        fn report(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn stop(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 5
        }
    }
    let made = few().fit(&plant(400, 2, 0.1, 7), &Impatient(0.into())).unwrap();
    assert_eq!((made.tried.len(), made.complete), (5, false));
}

#[test]
fn what_was_tried_is_kept_in_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let data = plant(300, 2, 0.1, 8);
    let params = AutoParams::new().trials(5).checkpoint(folder.path().to_path_buf());
    let first = params.fit(&data, &Silent).unwrap().model.to_bytes().unwrap();
    let kept = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(kept, 1 + 5);
    assert_eq!(params.fit(&data, &Silent).unwrap().model.to_bytes().unwrap(), first);
    assert_eq!(AutoParams::new().trials(5).fit(&data, &Silent).unwrap().model.to_bytes().unwrap(), first);
}

#[test]
fn what_was_skipped_is_part_of_the_recipe() {
    let data = plant(300, 2, 0.1, 8);
    let params = AutoParams::new().trials(5).skip(vec![1, 3]);
    let made = params.fit(&data, &Silent).unwrap();
    let all = AutoParams::new().trials(7).fit(&data, &Silent).unwrap();
    let settings = |made: &AutoOutcome, left_out: &[usize]| {
        let kept = made.tried.iter().enumerate().filter(|(k, _)| !left_out.contains(k));
        kept.map(|(_, one)| one.setting.clone()).collect::<Vec<_>>()
    };
    assert_eq!(settings(&made, &[]), settings(&all, &[1, 3]));
    assert_eq!((made.recipe.trials, made.recipe.skip, made.complete), (5, vec![1, 3], false));
}

#[test]
fn an_event_far_larger_than_all_that_were_seen_does_not_decide_over_the_promise() {
    let mut data = plant(1500, 3, 0.1, 9);
    let mut slow = 0.0;
    for t in 0..data.len() {
        // Rare, and once a hundred times as large, where it saturates.
        let event = if t == 1400 { 100.0 } else { f64::from(u8::from(t % 97 == 0)) };
        data.u[2][t] = event;
        slow += 0.2 * (event.min(2.0) - slow);
        data.y[0][t] += 2.0 * slow;
    }
    let made = few().trials(30).fit(&data, &Silent).unwrap();
    assert!(made.nested.error < 0.9, "{:?}", made.nested.blocks);
}
