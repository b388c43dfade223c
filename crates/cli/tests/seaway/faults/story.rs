//! The stories: what a person does, and how it ends when nothing goes wrong.

use serde_json::{Value, json};

use super::hand::{CANARIES, CONFIG_MAPS, DEPLOYMENTS};
use super::stage::Stage;

/// One story.
#[derive(Debug)]
pub struct Story {
    /// Its name, also that of its test.
    pub name: &'static str,
    /// What its Canary has besides what all have; merged into it.
    pub canary: fn() -> Value,
    /// What happens, in order.
    pub steps: &'static [Step],
    /// How it ends.
    pub end: End,
    /// Its version cannot run as primary: a Canary that is created anew for it can never be initialised.
    pub unfit: bool,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The Canary is created.
    Adopt,
    /// A new version of the app.
    Image(&'static str),
    /// A new version that cannot run as primary.
    CrashingPrimary(&'static str),
    /// The tracked ConfigMap changes.
    Config(&'static str),
    /// A person scales the target.
    Replicas(u32),
    /// A label on the target.
    Label,
    /// Waits for the canary's weight.
    AtWeight(i64),
    /// Waits so many seconds.
    Seconds(u64),
    /// A hook answers like this from now on.
    Hook(&'static str, u16),
    /// The Canary is deleted.
    Delete,
    /// The leader's process dies, and is started again.
    Restart,
}

/// Where a Canary comes to rest: section by section what `pass`, `fail` and `gone` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Adopted, nothing rolled out yet; the primary runs this version.
    Initialised(&'static str),
    /// The primary runs this version.
    Promoted(&'static str),
    /// The primary still runs this version.
    Failed(&'static str),
    /// The Canary and everything of ours is gone, and the target serves.
    Gone,
    /// The Canary is gone and nothing was to be put back.
    Left,
    /// A primary that cannot come up is waited for.
    Adopting,
}

/// The version every story starts from.
pub const OLD: &str = "6.0.0";
/// The version most of them roll out.
pub const NEW: &str = "6.0.1";

/// All of them.
pub static STORIES: [Story; 13] = [
    Story { name: "initialisation", canary: plain, steps: &[Step::Adopt], end: End::Initialised(OLD), unfit: false },
    Story { name: "success", canary: plain, steps: &[Step::Image(NEW)], end: End::Promoted(NEW), unfit: false },
    Story {
        name: "failed_analysis",
        canary: plain,
        steps: &[Step::Image("6.0.1-err70")],
        end: End::Failed(OLD),
        unfit: false,
    },
    Story {
        name: "deadline",
        canary: plain,
        steps: &[Step::Image("6.0.1-noready")],
        end: End::Failed(OLD),
        unfit: true,
    },
    Story {
        name: "new_revision",
        canary: plain,
        steps: &[Step::Image(NEW), Step::AtWeight(30), Step::Seconds(3), Step::Image("6.0.2")],
        end: End::Promoted("6.0.2"),
        unfit: false,
    },
    Story {
        name: "target_edited",
        canary: plain,
        steps: &[
            Step::Image(NEW),
            Step::AtWeight(30),
            Step::Seconds(3),
            Step::Label,
            Step::Replicas(2),
            Step::Seconds(3),
            Step::Config("green"),
        ],
        end: End::Promoted(NEW),
        unfit: false,
    },
    Story {
        name: "primary_fails",
        canary: plain,
        steps: &[Step::CrashingPrimary(NEW)],
        end: End::Failed(OLD),
        unfit: true,
    },
    Story {
        name: "manual_rollback",
        canary: with_rollback_hook,
        steps: &[Step::Image(NEW), Step::AtWeight(30), Step::Seconds(3), Step::Hook("/rollback", 200)],
        end: End::Failed(OLD),
        unfit: false,
    },
    Story {
        name: "delete_with_revert",
        canary: with_revert,
        steps: &[Step::Image(NEW), Step::AtWeight(30), Step::Seconds(3), Step::Delete],
        end: End::Gone,
        unfit: false,
    },
    Story { name: "step_list", canary: with_steps, steps: &[Step::Image(NEW)], end: End::Promoted(NEW), unfit: false },
    Story {
        name: "stepped_promotion",
        canary: with_stepped_promotion,
        steps: &[Step::Image(NEW)],
        end: End::Promoted(NEW),
        unfit: false,
    },
    Story {
        name: "operator_restarted",
        canary: plain,
        steps: &[Step::Image(NEW), Step::AtWeight(30), Step::Seconds(3), Step::Restart],
        end: End::Promoted(NEW),
        unfit: false,
    },
    Story {
        name: "skip_analysis",
        canary: skipping,
        steps: &[Step::Image(NEW)],
        end: End::Promoted(NEW),
        unfit: false,
    },
];

/// The story of a name.
pub fn find(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}

fn plain() -> Value {
    json!({})
}

fn with_rollback_hook() -> Value {
    json!({"spec": {"analysis": {"webhooks": [hook("pre-rollout"), hook("rollback")]}}})
}

fn with_revert() -> Value {
    json!({"spec": {"revertOnDeletion": true}})
}

fn with_steps() -> Value {
    json!({"spec": {"analysis": {"stepWeight": null, "maxWeight": null, "stepWeights": [10, 30, 60]}}})
}

fn with_stepped_promotion() -> Value {
    json!({"spec": {"analysis": {"stepWeightPromotion": 50}}})
}

fn skipping() -> Value {
    json!({"spec": {"skipAnalysis": true}})
}

fn hook(kind: &str) -> Value {
    json!({"name": kind, "type": kind, "url": format!("http://hooks.example/{kind}"), "timeout": "5s"})
}

impl Story {
    /// The Canary of the story.
    pub fn object(&self) -> Value {
        let mut canary = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "metadata": {"name": "podinfo", "namespace": "test"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
                "progressDeadlineSeconds": 30,
                "service": {
                    "port": 9898, "targetPort": 9898, "hosts": ["www.example.com"],
                    "gatewayRefs": [{"name": "gateway", "namespace": "istio-ingress"}],
                },
                "analysis": {
                    "interval": "10s", "threshold": 3, "stepWeight": 30, "maxWeight": 60,
                    "metrics": [{
                        "name": "error-rate", "templateRef": {"name": "error-rate"},
                        "thresholdRange": {"max": 1}, "interval": "10s",
                    }],
                    "webhooks": [hook("pre-rollout"), hook("confirm-promotion")],
                },
            },
        });
        json_patch::merge(&mut canary, &(self.canary)());
        canary
    }

    /// The versions it rolls out.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Image(tag) | Step::CrashingPrimary(tag) => Some(*tag),
            _ => None,
        })
    }

    /// Whether a deletion gives everything back first.
    pub fn reverts(&self) -> bool {
        self.object()["spec"]["revertOnDeletion"] == true
    }

    /// Whether the adoption is part of the story, not of its prelude.
    pub fn adopts(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Adopt))
    }
}

impl Step {
    /// Lets it happen. A wait ends at the stage's limit; what follows then happens all the same.
    pub async fn happen(self, stage: &Stage) {
        let person = &stage.ground.person;
        let target = format!("{DEPLOYMENTS}/podinfo");
        match self {
            Self::Adopt => drop(person.create(CANARIES, &stage.story.object()).await),
            Self::Image(tag) => drop(person.set_image(tag, "").await),
            Self::CrashingPrimary(tag) => drop(person.set_image(tag, "podinfo-primary").await),
            Self::Config(color) => {
                person.merge(&format!("{CONFIG_MAPS}/settings"), &json!({"data": {"color": color}})).await;
            }
            Self::Replicas(count) => drop(person.merge(&target, &json!({"spec": {"replicas": count}})).await),
            Self::Label => {
                person.merge(&target, &json!({"metadata": {"labels": {"example.com/team": "harbour"}}})).await;
            }
            Self::AtWeight(weight) => drop(stage.until(|book| book.weight() == weight).await),
            Self::Seconds(seconds) => stage.sail(std::time::Duration::from_secs(seconds)).await,
            Self::Hook(path, code) => stage.ground.outside.answer(path, code),
            Self::Delete => drop(person.delete(&format!("{CANARIES}/podinfo")).await),
            Self::Restart => stage.ground.crew.leader.faults.kill(),
        }
    }
}
