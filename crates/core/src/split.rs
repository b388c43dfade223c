//! Who gets how much of the traffic.
//!
//! A [`Split`] adds up to 100 by construction: there is no way to build one that does not, so no router ever has to
//! ask. It says nothing about how traffic is moved; that is the routers' business.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the versions that may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Serves users: the last promoted revision.
    Primary,
    /// The new revision under analysis.
    Canary,
    /// The old revision at the canary's scale, a fair comparison.
    Baseline,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Canary => "canary",
            Self::Baseline => "baseline",
        })
    }
}

/// Weights per variant, in percent, always 100 together; plus the share of requests that is mirrored to the canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    canary: u8,
    baseline: u8,
    mirror: Option<u8>,
}

impl Split {
    /// Everything to the primary: how every rollout starts and how every rollback ends.
    pub const fn primary_only() -> Self {
        Self { canary: 0, baseline: 0, mirror: None }
    }

    /// `weight` percent to the canary and the rest to the primary; more than 100 means 100.
    pub fn canary(weight: u8) -> Self {
        Self { canary: weight.min(100), ..Self::primary_only() }
    }

    /// Three variants; `None` when canary and baseline together pass 100.
    pub fn with_baseline(canary: u8, baseline: u8) -> Option<Self> {
        (u16::from(canary) + u16::from(baseline) <= 100).then_some(Self { canary, baseline, mirror: None })
    }

    /// The same weights, with `percent` of the requests copied to the canary.
    pub fn mirrored(self, percent: u8) -> Self {
        Self { mirror: Some(percent.min(100)), ..self }
    }

    /// The share of one variant in percent.
    pub fn weight(&self, variant: Variant) -> u8 {
        match variant {
            Variant::Primary => 100 - self.canary - self.baseline,
            Variant::Canary => self.canary,
            Variant::Baseline => self.baseline,
        }
    }

    /// All shares, primary first.
    pub fn weights(&self) -> [(Variant, u8); 3] {
        [Variant::Primary, Variant::Canary, Variant::Baseline].map(|variant| (variant, self.weight(variant)))
    }

    /// The mirrored share, if mirroring is on.
    pub fn mirror(&self) -> Option<u8> {
        self.mirror
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.weight(Variant::Primary), self.weight(Variant::Canary))
    }
}
