/// Sorts `values` and returns the median: the middle one, or the mean of the middle two; NaN
/// without values.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
    f64::midpoint(middle(values.len().saturating_sub(1) / 2), middle(values.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert!(median(&mut []).is_nan());
        for (values, middle) in [
            (&mut [7.0][..], 7.0),
            (&mut [4.0, 1.0], 2.5),
            (&mut [9.0, 1.0, 4.0], 4.0),
            (&mut [9.0, 1.0, 4.0, 3.0], 3.5),
        ] {
            assert!((median(values) - middle).abs() < 1e-9);
        }
    }
}
