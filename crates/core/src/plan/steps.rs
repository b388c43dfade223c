//! The weights a canary goes through.

use seaway_api::FieldError;
use seaway_api::canary::Analysis;

/// The weights a canary goes through on its way to promotion. Every step is larger than the one before and at most 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steps {
    /// `step` more each time until `max` is reached or passed.
    Even {
        /// Added per step, at least 1.
        step: u8,
        /// The promotion starts at this weight.
        max: u8,
    },
    /// These weights, ascending; the last one is the largest.
    Listed(Vec<u8>),
}

impl Steps {
    /// The steps of an analysis. Flagger stalls on steps that do not grow; here they are errors.
    pub fn new(analysis: &Analysis) -> Result<Self, FieldError> {
        if let Some(step) = analysis.step_weight {
            return Self::even(step, analysis.max_weight.unwrap_or(0));
        }
        match analysis.step_weights.as_deref() {
            Some(weights) if !weights.is_empty() => Self::listed(weights),
            _ => Err(FieldError::new(
                "spec.analysis.stepWeight",
                "no steps are given",
                "write stepWeight, stepWeights or iterations",
            )),
        }
    }

    /// A step of more than all traffic is all traffic, as in Flagger.
    fn even(step: i64, max: i64) -> Result<Self, FieldError> {
        let max = if max <= 0 { 100 } else { max.min(100) };
        match u8::try_from(step.min(100)) {
            Ok(step @ 1..=100) => Ok(Self::Even { step, max: u8::try_from(max).unwrap_or(100) }),
            _ => Err(FieldError::new(
                "spec.analysis.stepWeight",
                format!("{step} is not between 1 and 100"),
                "write a percentage",
            )),
        }
    }

    fn listed(weights: &[i64]) -> Result<Self, FieldError> {
        let mut steps: Vec<u8> = Vec::with_capacity(weights.len());
        for (index, weight) in weights.iter().enumerate() {
            let last = steps.last().copied().unwrap_or(0);
            match u8::try_from(*weight) {
                Ok(step @ 1..=100) if step > last => steps.push(step),
                _ => {
                    return Err(FieldError::new(
                        format!("spec.analysis.stepWeights[{index}]"),
                        format!("{weight} is not between 1 and 100 and larger than the step before"),
                        "write ascending percentages",
                    ));
                }
            }
        }
        Ok(Self::Listed(steps))
    }

    /// Everything in one step: what a plan without analysis has.
    pub(super) fn at_once() -> Self {
        Self::Even { step: 100, max: 100 }
    }

    /// The weight at which the promotion starts.
    pub fn max(&self) -> u8 {
        match self {
            Self::Even { max, .. } => *max,
            Self::Listed(weights) => weights.last().copied().unwrap_or(100),
        }
    }

    /// The weight after `weight`; `None` once the maximum is reached. Even steps may pass the maximum (20 up to 50 gives
    /// 20, 40, 60). From a weight that is not in the list (the spec was edited midway) the next larger one follows, not
    /// 100 as in Flagger.
    pub fn next(&self, weight: u8) -> Option<u8> {
        if weight >= self.max() {
            return None;
        }
        match self {
            Self::Even { step, .. } => Some(weight.saturating_add(*step).min(100)),
            Self::Listed(weights) => weights.iter().copied().find(|next| *next > weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All weights from zero on.
    fn walk(steps: &Steps) -> Vec<u8> {
        std::iter::successors(steps.next(0), |weight| steps.next(*weight)).collect()
    }

    fn even(step: i64, max: i64) -> Vec<u8> {
        walk(&Steps::even(step, max).unwrap())
    }

    fn listed(weights: &[i64]) -> Vec<u8> {
        walk(&Steps::listed(weights).unwrap())
    }

    #[test]
    fn weights_follow_flaggers_table() {
        assert_eq!(even(10, 50), [10, 20, 30, 40, 50]);
        assert_eq!(even(20, 50), [20, 40, 60], "the last step overshoots");
        assert_eq!(even(30, 0), [30, 60, 90, 100], "no maximum is 100, and 100 is never passed");
        assert_eq!(even(100, 100), [100]);
        assert_eq!(even(101, 50), [100]);
        assert_eq!(even(60, 50), [60]);
        assert_eq!(even(50, 1000), [50, 100]);
        assert_eq!(listed(&[1, 2, 10, 80]), [1, 2, 10, 80]);
        assert_eq!(listed(&[100]), [100]);
    }

    #[test]
    fn a_weight_outside_the_list_goes_to_the_next_larger_one() {
        let steps = Steps::listed(&[5, 25, 75]).unwrap();
        assert_eq!((steps.next(7), steps.next(26), steps.next(80)), (Some(25), Some(75), None));
    }

    #[test]
    fn steps_that_do_not_grow_are_refused_where_flagger_stalls() {
        for step in [0, -10] {
            assert_eq!(Steps::even(step, 50).unwrap_err().path, "spec.analysis.stepWeight");
        }
        for (weights, at) in [(&[10, 10][..], 1), (&[20, 10], 1), (&[0, 10], 0), (&[10, 101], 1), (&[-1], 0)] {
            assert_eq!(Steps::listed(weights).unwrap_err().path, format!("spec.analysis.stepWeights[{at}]"));
        }
        assert!(Steps::new(&Analysis::default()).is_err());
    }
}
