//! A new revision asks for consent before anything runs.
//!
//! Without gates it starts at once. A closed gate costs no failed checks, has no time limit, and is asked again at every
//! tick; nothing of the new revision runs meanwhile.

use seaway_api::canary::{HookType, Phase};

use super::draft::Draft;
use super::rest;
use super::rollback::{self, Cause, Wish};
use super::round::{Hooks, Round};
use crate::effect::Effect;
use crate::observed::Revision;
use crate::revision::digest;
use crate::status::{self, ROLLING_BACK};
use crate::zoo;

/// Phase `Waiting`: a gate was closed.
pub(super) fn decide(round: &Round<'_>) -> Draft {
    if round.status.is_true(ROLLING_BACK) {
        return rollback::go_on(round);
    }
    let mut draft = Draft::new("wait for consent");
    if !zoo::LEAVES_THE_ROUTE_AT_A_GATE {
        rest::keep(round, &mut draft);
    }
    rest::remake(round, &mut draft);
    rest::sleep(round, &mut draft);
    if let Some(revision) = &round.seen.revision {
        draft = start_or_wait(round, draft, revision);
    } else {
        round.problems(&mut draft);
    }
    rest::keep_autoscaler(round, &mut draft);
    draft
}

/// Starts the rollout of `revision`, or asks the gates whether it may.
pub(super) fn start_or_wait(round: &Round<'_>, mut draft: Draft, revision: &Revision) -> Draft {
    draft.rule = "wait for consent";
    if zoo::STAMPS_BEFORE_ACTING && round.status.phase == Phase::Failed {
        let stamp = |status: &mut _| status::stamp(status, revision);
        draft.status = Some(status::changed(round.now, round.plan, round.status, stamp));
        return draft;
    }
    if round.plan.hooks_of(HookType::ConfirmRollout).next().is_none() {
        return start(round, draft, revision);
    }
    if round.tick == 0 {
        draft.wake_at(round.next_tick());
        return draft;
    }
    let digest = digest(revision);
    for tick in round.ticks(&digest) {
        let mut attempt = draft.clone();
        match ask(round, &mut attempt, &digest, tick) {
            Gate::Closed if tick < round.tick => {}
            Gate::Closed | Gate::Pending => {
                attempt.wake_at(round.next_tick());
                return attempt;
            }
            Gate::Open => return start(round, attempt, revision),
            Gate::RollBack(hook) => {
                return rollback::start(
                    round,
                    attempt,
                    &Cause::Manual(hook),
                    Some(revision),
                    round.status.failed_checks,
                );
            }
        }
    }
    draft
}

enum Gate {
    Open,
    Pending,
    Closed,
    RollBack(String),
}

/// One asking of all gates.
fn ask(round: &Round<'_>, draft: &mut Draft, digest: &str, tick: u64) -> Gate {
    if round.status.phase == Phase::Waiting {
        match rollback::wish(round, draft, digest, tick) {
            Wish::Nobodys => {}
            Wish::Pending => return Gate::Pending,
            Wish::Of(hook) => return Gate::RollBack(hook),
        }
    }
    match round.hooks(draft, digest, tick, HookType::ConfirmRollout) {
        Hooks::Passed => Gate::Open,
        Hooks::Pending(subject) => {
            draft.make(round.ask(digest, tick, subject));
            Gate::Pending
        }
        Hooks::Refused(hook, _) => {
            if round.status.phase != Phase::Waiting {
                draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
                    status.phase = Phase::Waiting;
                }));
                let text = format!("Halt {} advancement waiting for approval {}", round.plan.key(), hook.name);
                draft.notices.push(round.warning(&format!("waiting {digest}"), text));
            }
            Gate::Closed
        }
    }
}

/// The rollout begins: the revision is stamped, then the target is scaled up. No traffic moves yet.
fn start(round: &Round<'_>, mut draft: Draft, revision: &Revision) -> Draft {
    draft.rule = "new revision";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status::restart(status, revision);
    }));
    draft.make(Effect::ScaleUp);
    let text = format!("New revision detected! Scaling up {}", round.plan.target_key());
    draft.notices.push(round.normal(&format!("new revision {}", digest(revision)), text));
    draft
}
