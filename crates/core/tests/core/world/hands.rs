//! How effects change the world: one write at a time, each of which may be the last one before a crash.

use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_core::effect::{Destination, Effect};
use seaway_core::invariants::commit;
use seaway_core::observed::Revision;
use seaway_core::plan::Plan;
use seaway_core::revision::flagger_id;
use seaway_core::split::Variant;

use super::{Load, Memory, REPLICAS, SETTLING, Stop, Stored, World, later, whole};

impl World {
    /// A moment at which the operator may die, or be refused.
    pub(super) fn point(&mut self) -> Result<(), Stop> {
        self.points += 1;
        if [self.crash_at, self.second_crash].contains(&Some(self.points)) {
            self.memory = Memory::default();
            self.slept = None;
            self.wake = Some(self.now);
            self.crashes += 1;
            return Err(Stop::Crash);
        }
        if self.refuse_at == Some(self.points) {
            // The operator tries again after a pause.
            self.wake = Some(later(self.now, Duration::from_secs(1)));
            return Err(Stop::Refused);
        }
        Ok(())
    }

    /// One write. A crash comes before it, so that it did not happen.
    pub(super) fn commit(&mut self, plan: &Plan, write: impl FnOnce(&mut Self) -> bool) -> Result<(), Stop> {
        let untouched = self.clone();
        if !write(self) {
            return Ok(());
        }
        let written = std::mem::replace(self, untouched);
        let before = self.scene();
        self.point()?;
        let points = self.points;
        *self = written;
        self.points = points;
        self.writes += 1;
        let after = self.scene();
        if let Err(violation) = commit::check(plan, &before, &after) {
            panic!("{violation}\n{before:#?}\n{after:#?}");
        }
        let changing = matches!(self.phase(), Phase::Initializing | Phase::Promoting | Phase::Finalising);
        if let Some(primary) = self.primary.as_ref().filter(|_| !changing) {
            assert!(whole(&primary.revision), "a mixed primary in {}: {:?}", self.phase(), primary.revision);
        }
        Ok(())
    }

    /// Makes an effect true. `false` means that it cannot be, and the round ends.
    pub(super) fn apply(&mut self, plan: &Plan, effect: &Effect) -> Result<bool, Stop> {
        let now = self.now;
        match effect {
            Effect::Finalizer(on) => {
                let on = *on;
                self.commit(plan, |world| std::mem::replace(&mut world.finalizer, on) != on)?;
                self.gone = self.deleting && !on;
                let drained = later(self.route_changed, SETTLING + plan.drain) <= now;
                assert!(!self.gone || !self.to_apex || drained, "the primary goes while requests are under way");
            }
            // Their selectors follow the target's.
            Effect::VariantServices | Effect::ApexToPrimary | Effect::ApexSelectsPrimary | Effect::ApexToTarget
                if self.target.is_none() =>
            {
                return Ok(false);
            }
            Effect::VariantServices if self.services => {}
            Effect::VariantServices => self.commit(plan, |world| !std::mem::replace(&mut world.services, true))?,
            Effect::CreatePrimary(revision) => {
                if self.target.as_ref().map(|target| &target.revision) != Some(revision) {
                    return Ok(false);
                }
                let id = Some(flagger_id(&plan.uid, revision));
                self.create(plan, revision, id)?;
            }
            Effect::ApexToPrimary => {
                let drained = later(self.left_apex, SETTLING + plan.drain) <= now;
                assert!(!self.other_ports || !self.to_apex && drained, "users come by a port of the apex that is gone");
                self.commit(plan, |world| {
                    let other_ports = std::mem::replace(&mut world.other_ports, false);
                    world.apex.replace(Variant::Primary) != Some(Variant::Primary) || other_ports
                })?;
            }
            Effect::ApexSelectsPrimary => self.point_apex(plan, Variant::Primary)?,
            Effect::ApexToTarget => self.point_apex(plan, Variant::Canary)?,
            Effect::SetSplit(split) => self.commit(plan, |world| {
                let moved = world.split != Some(*split);
                if moved {
                    if world.to_apex {
                        world.must_be_expected(plan);
                    }
                    // Of a Canary that goes the weights change and nothing else.
                    let announced = world.deleting && world.announced;
                    world.rewrite_route(Some(*split), false, announced);
                }
                moved
            })?,
            Effect::Announce(next) => {
                assert_eq!(*next == Destination::Variants, self.to_apex, "announced is where the route leads already");
                self.commit(plan, |world| {
                    let news = !world.announced;
                    if news {
                        world.rewrite_route(world.split, world.to_apex, true);
                    }
                    news
                })?;
            }
            Effect::RouteToApex => self.commit(plan, |world| {
                let splits = !world.to_apex && world.split.is_some();
                if splits {
                    world.must_be_expected(plan);
                    world.rewrite_route(None, true, false);
                }
                splits
            })?,
            Effect::Release => self.commit(plan, |world| !std::mem::replace(&mut world.released, true))?,
            Effect::ScaleUp => self.scale(plan, |target, _| target.replicas.max(REPLICAS))?,
            Effect::ScaleToZero => {
                let writes = self.writes;
                self.scale(plan, |_, _| 0)?;
                self.slept = if self.writes > writes { Some(now) } else { self.slept };
            }
            Effect::ScaleToPrimary => self.scale(plan, |_, primary| primary.map_or(REPLICAS, |load| load.replicas))?,
            Effect::StorePrevious(incoming) => return self.store_previous(plan, incoming),
            Effect::Promote { revision, id } => {
                if self.target.as_ref().map(|target| &target.revision) != Some(revision) || self.primary.is_none() {
                    return Ok(false);
                }
                self.copy(plan, revision, Some(id.clone()))?;
            }
            Effect::RestorePrevious(incoming) => {
                let Some(Stored { outgoing, id, .. }) = self.stored_for(incoming).cloned() else { return Ok(true) };
                self.create(plan, &outgoing, id.clone())?;
                self.copy(plan, &outgoing, id)?;
            }
            Effect::KeepCurrent(_) => self.keep_configs(plan)?,
            Effect::PrimaryAutoscaler { .. } => return Ok(!self.no_autoscaler),
            Effect::Ask(_) => {}
        }
        Ok(true)
    }

    /// The data plane has had time to learn where the route leads now.
    fn must_be_expected(&self, plan: &Plan) {
        let known = later(self.route_changed, SETTLING + plan.drain) <= self.now;
        assert!(self.announced && known, "users are sent to Services that the data plane has not heard of");
    }

    fn create(&mut self, plan: &Plan, revision: &Revision, id: Option<String>) -> Result<(), Stop> {
        self.commit(plan, |world| {
            let missing = world.primary.is_none();
            let now = world.now;
            world.primary.get_or_insert_with(|| Load::new(now, revision.clone(), id, false));
            missing
        })
    }

    /// The configs first, then the rest, as two writes.
    fn store_previous(&mut self, plan: &Plan, incoming: &Revision) -> Result<bool, Stop> {
        let Some(Load { revision, id, .. }) = self.primary.clone() else { return Ok(false) };
        if self.previous.as_ref().is_some_and(|stored| stored.incoming == *incoming) {
            return Ok(true);
        }
        self.keep_configs(plan)?;
        self.commit(plan, |world| {
            world.previous = Some(Stored { incoming: incoming.clone(), outgoing: revision, id });
            true
        })?;
        Ok(true)
    }

    fn keep_configs(&mut self, plan: &Plan) -> Result<(), Stop> {
        let configs = self.primary.as_ref().map(|primary| primary.revision.configs.clone()).unwrap_or_default();
        self.commit(plan, |world| {
            let differ = world.kept != configs;
            world.kept = configs;
            differ
        })
    }

    /// The configs first, which running pods do not notice, then the template.
    fn copy(&mut self, plan: &Plan, revision: &Revision, id: Option<String>) -> Result<(), Stop> {
        let now = self.now;
        let deadly = self.script.deadly && !(self.script.comes_up)(&revision.template, true);
        self.commit(plan, |world| {
            let Some(primary) = &mut world.primary else { return false };
            let differ = primary.revision.configs != revision.configs;
            primary.revision.configs.clone_from(&revision.configs);
            differ
        })?;
        self.commit(plan, |world| {
            world.primary.as_mut().is_some_and(|primary| {
                let changed = primary.set(now, revision, id);
                primary.old = if changed && deadly { 0 } else { primary.old };
                changed
            })
        })
    }

    fn scale(&mut self, plan: &Plan, to: impl FnOnce(&Load, Option<&Load>) -> u32) -> Result<(), Stop> {
        let now = self.now;
        self.commit(plan, |world| {
            let primary = world.primary.clone();
            world.target.as_mut().is_some_and(|target| {
                let replicas = to(target, primary.as_ref());
                target.scale(now, replicas)
            })
        })
    }

    fn point_apex(&mut self, plan: &Plan, variant: Variant) -> Result<(), Stop> {
        self.commit(plan, |world| world.apex.replace(variant) != Some(variant))
    }
}
