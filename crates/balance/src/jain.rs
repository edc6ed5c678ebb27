/// Returns Jain's fairness index of `shares`: 1 if all are equal, 1/n if one of n has everything.
/// `None` without a share above 0.
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn index(shares: &[f64]) -> f64 {
        jain_index(shares.iter().copied()).unwrap()
    }

    #[test]
    fn equal_shares_have_index_one_and_a_single_user_one_nth() {
        assert!((index(&[5.0; 7]) - 1.0).abs() < 1e-12);
        assert!((index(&[3.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 3)^2 / (2 * (1 + 9))
        assert!((index(&[1.0, 3.0]) - 0.8).abs() < 1e-12);
        assert_eq!((jain_index([]), jain_index([0.0, 0.0])), (None, None));
    }

    #[test]
    fn index_is_between_one_nth_and_one_and_has_no_unit() {
        let mut rng = Rng::new(5);
        for count in 1..50_u32 {
            let shares: Vec<f64> = (0..count).map(|_| rng.unit() + 1e-3).collect();
            let found = index(&shares);
            assert!(1.0 / f64::from(count) - 1e-12 <= found && found <= 1.0 + 1e-12);
            let scaled: Vec<f64> = shares.iter().map(|share| share * 1e9).collect();
            assert!((index(&scaled) - found).abs() < 1e-9);
        }
    }
}
