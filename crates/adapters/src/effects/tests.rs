//! A promotion from beginning to end, and what is left of it when it stops half way.

use seaway_api::canary::Canary;
use seaway_core::effect::Destination;
use seaway_core::observed::Revision;
use seaway_core::split::Split;
use serde_json::json;

use super::*;
use crate::kinds::{CONFIG_MAP, CONTROLLER_REVISION, HTTP_ROUTE, SECRET, SERVICE};
use crate::refusal::Blame;
use crate::routers::gateway_api::GatewayApi;
use crate::targets::foreign_objects;
use crate::testing::{Server, document};

const PODINFO: &str = include_str!("../targets/podinfo.yaml");

struct Ship {
    canary: Canary,
    server: Server,
    conventions: Conventions,
}

impl Ship {
    fn new() -> Self {
        let mut server = Server::default();
        server.put(DEPLOYMENT, document(PODINFO));
        let config = |kind: &str, name: &str, type_: &str, data: Value| json!({ "kind": kind, "metadata": { "name": name, "namespace": "test" }, "type": type_, "data": data });
        server.put(CONFIG_MAP, config("ConfigMap", "settings", "", json!({ "color": "red" })));
        server.put(CONFIG_MAP, config("ConfigMap", "projected", "", json!({ "a": "1" })));
        let mut untracked = config("ConfigMap", "untracked", "", json!({}));
        untracked["metadata"]["annotations"] = json!({ "flagger.app/config-tracking": "disabled" });
        server.put(CONFIG_MAP, untracked);
        server.put(SECRET, config("Secret", "token", "Opaque", json!({ "t": "MQ==" })));
        server.put(SECRET, config("Secret", "tls", "kubernetes.io/service-account-token", json!({ "t": "Mg==" })));
        Self { canary: Canary::test(), server, conventions: Conventions::default() }
    }

    fn revision(&self) -> Revision {
        config::revision(self.server.get(DEPLOYMENT, "podinfo"), &self.server.world(), &self.conventions).unwrap()
    }

    fn id(&self) -> String {
        flagger_id(uid(&self.canary), &self.revision())
    }

    /// Fetches what an effect needs and turns it into changes.
    fn plan(&self, effect: &Effect) -> (usize, Result<Vec<Change>, Refusal>) {
        let world = self.server.world();
        let nothing = Fetched::new();
        let context = |fetched| EffectContext {
            canary: &self.canary,
            world: &world,
            router: &GatewayApi,
            conventions: &self.conventions,
            fetched,
        };
        let fetched = self.server.fetch(&needs(effect, &context(&nothing)));
        (fetched.len(), changes(effect, &context(&fetched)))
    }

    /// Makes an effect true; says how many reads and writes that took.
    fn make(&mut self, effect: &Effect) -> (usize, usize) {
        let (reads, changes) = self.plan(effect);
        let changes = changes.unwrap();
        for change in &changes {
            self.server.obey(change);
        }
        let (reads_again, writes_again) = self.plan(effect);
        assert_eq!((reads_again, writes_again), (0, Ok(Vec::new())), "{effect:?} is true now");
        (reads, changes.len())
    }

    fn change(&mut self, kind: crate::change::Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.server.get(kind, name).clone();
        change(&mut object);
        self.server.put(kind, object);
    }

    /// A new image and a new value in one of the configs.
    fn new_version(&mut self) {
        self.change(DEPLOYMENT, "podinfo", |target| {
            target["spec"]["template"]["spec"]["containers"][0]["image"] = "podinfo:6.0.1".into();
        });
        self.change(CONFIG_MAP, "settings", |settings| settings["data"]["color"] = "blue".into());
    }

    fn initialize(&mut self) {
        let revision = self.revision();
        assert_eq!(self.make(&Effect::VariantServices), (0, 2));
        assert_eq!(self.make(&Effect::CreatePrimary(revision.clone())), (3, 4));
        assert_eq!(self.make(&Effect::ApexToPrimary), (0, 1));
        assert_eq!(self.make(&Effect::SetSplit(Split::primary_only())), (0, 1));
        assert_eq!(self.make(&Effect::ScaleToZero), (0, 1));
        assert_eq!(self.make(&Effect::KeepCurrent(revision)), (3, 3));
    }
}

#[test]
fn a_rollout_from_initialisation_to_promotion() {
    let mut ship = Ship::new();
    ship.initialize();
    assert_eq!(ship.server.names(SERVICE), ["podinfo", "podinfo-canary", "podinfo-primary"]);
    assert_eq!(ship.server.names(HTTP_ROUTE), ["podinfo"]);
    ship.new_version();
    let revision = ship.revision();
    assert_eq!(ship.make(&Effect::ScaleUp), (0, 1));
    assert_eq!(ship.make(&Effect::SetSplit(Split::canary(10))), (0, 1));
    // Of three tracked configs one changed: the old one is stored already, one read copies the new one.
    assert_eq!(ship.make(&Effect::StorePrevious(revision.clone())), (0, 1));
    let id = ship.id();
    assert_eq!(ship.make(&Effect::Promote { revision: revision.clone(), id: id.clone() }), (1, 2));
    let primary = ship.server.get(DEPLOYMENT, "podinfo-primary");
    assert_eq!(primary["spec"]["template"]["metadata"]["annotations"]["flagger-id"], id.as_str());
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary")["data"]["color"], "blue");
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary-previous")["data"]["color"], "red");
    assert!(config::equal_primary(&ship.revision(), "test", &ship.server.world()));
    assert_eq!(ship.make(&Effect::KeepCurrent(revision)), (1, 1), "stored for the next promotion");
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary-previous")["data"]["color"], "blue");
}

#[test]
fn a_primary_whose_configs_were_never_stored_is_stored_at_promotion() {
    let mut ship = Ship::new();
    ship.initialize();
    let stored = ship.server.get(CONFIG_MAP, "settings-primary-previous").clone();
    ship.server.obey(&crate::object::delete(CONFIG_MAP, &stored));
    ship.new_version();
    let revision = ship.revision();
    assert_eq!(ship.make(&Effect::StorePrevious(revision)), (1, 2));
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary-previous")["data"]["color"], "red");
}

#[test]
fn a_new_image_alone_costs_no_reads() {
    let mut ship = Ship::new();
    ship.initialize();
    ship.change(DEPLOYMENT, "podinfo", |target| {
        target["spec"]["template"]["spec"]["containers"][0]["image"] = "podinfo:6.0.1".into();
    });
    let (revision, id) = (ship.revision(), ship.id());
    assert_eq!(ship.make(&Effect::StorePrevious(revision.clone())), (0, 1));
    assert_eq!(ship.make(&Effect::Promote { revision, id }), (0, 1));
}

#[test]
fn a_failed_promotion_is_taken_back() {
    let mut ship = Ship::new();
    ship.initialize();
    let before = ship.server.get(DEPLOYMENT, "podinfo-primary")["spec"].clone();
    ship.new_version();
    let (revision, id) = (ship.revision(), ship.id());
    ship.make(&Effect::StorePrevious(revision.clone()));
    ship.make(&Effect::Promote { revision: revision.clone(), id });
    assert_eq!(ship.make(&Effect::RestorePrevious(revision)), (1, 2));
    assert_eq!(ship.server.get(DEPLOYMENT, "podinfo-primary")["spec"], before);
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary")["data"]["color"], "red");
}

#[test]
fn a_promotion_that_stops_half_way_does_not_store_the_new_as_the_old() {
    let mut ship = Ship::new();
    ship.initialize();
    ship.new_version();
    let (revision, id) = (ship.revision(), ship.id());
    ship.make(&Effect::StorePrevious(revision.clone()));
    // The config is copied, then the process dies before the Deployment is written.
    let (_, promotion) = ship.plan(&Effect::Promote { revision: revision.clone(), id: id.clone() });
    ship.server.obey(&promotion.unwrap()[0]);
    assert_eq!(ship.make(&Effect::StorePrevious(revision.clone())), (0, 0));
    assert_eq!(ship.make(&Effect::Promote { revision: revision.clone(), id }), (0, 1));
    ship.make(&Effect::RestorePrevious(revision));
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary")["data"]["color"], "red");
}

#[test]
fn a_promotion_that_was_abandoned_half_way_leaves_no_mix() {
    let mut ship = Ship::new();
    ship.initialize();
    let before = ship.server.get(DEPLOYMENT, "podinfo-primary")["spec"].clone();
    ship.new_version();
    let (abandoned, id) = (ship.revision(), ship.id());
    ship.make(&Effect::StorePrevious(abandoned.clone()));
    let (_, promotion) = ship.plan(&Effect::Promote { revision: abandoned.clone(), id });
    let intact = |ship: &Ship, revision: &Revision| previous::is_intact(&ship.canary, &ship.server.world(), revision);
    assert!(intact(&ship, &abandoned));
    ship.server.obey(&promotion.unwrap()[0]);
    assert!(!intact(&ship, &abandoned), "its template is the old one, a config is new");
    // The target moves on; the primary's template never came to the abandoned one.
    ship.change(CONFIG_MAP, "settings", |settings| settings["data"]["color"] = "green".into());
    assert_eq!(ship.make(&Effect::RestorePrevious(abandoned.clone())), (1, 1));
    assert!(intact(&ship, &abandoned));
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary")["data"]["color"], "red");
    assert_eq!(ship.server.get(DEPLOYMENT, "podinfo-primary")["spec"], before);
    let next = ship.revision();
    ship.make(&Effect::StorePrevious(next.clone()));
    assert!(previous::is_stored(&ship.canary, &ship.server.world(), &next));
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary-previous")["data"]["color"], "red");
}

#[test]
fn what_was_stored_for_another_promotion_is_not_restored() {
    let mut ship = Ship::new();
    ship.initialize();
    ship.new_version();
    let (second, id) = (ship.revision(), ship.id());
    ship.make(&Effect::StorePrevious(second.clone()));
    ship.make(&Effect::Promote { revision: second.clone(), id });
    ship.make(&Effect::KeepCurrent(second.clone()));
    // The store of that promotion describes the first primary, its configs are already those of the second.
    let stored = |ship: &Ship, revision: &Revision| previous::is_stored(&ship.canary, &ship.server.world(), revision);
    assert!(!stored(&ship, &second));
    let refused = ship.plan(&Effect::RestorePrevious(second)).1.unwrap_err();
    assert_eq!(
        refused.text,
        "podinfo-primary.test cannot be restored: ConfigMap settings-primary-previous.test no longer holds what it ran; \
         push a revision that works"
    );

    // A third revision is about to be promoted; nothing has changed yet, so nothing is taken back.
    ship.change(CONFIG_MAP, "settings", |settings| settings["data"]["color"] = "green".into());
    let third = ship.revision();
    assert!(!stored(&ship, &third));
    assert_eq!(ship.plan(&Effect::RestorePrevious(third.clone())), (0, Ok(Vec::new())));

    // The primary was lost and made anew from the third one: there is nothing to go back to.
    let lost = ship.server.get(DEPLOYMENT, "podinfo-primary").clone();
    ship.server.obey(&crate::object::delete(DEPLOYMENT, &lost));
    ship.make(&Effect::CreatePrimary(third.clone()));
    let refused = ship.plan(&Effect::RestorePrevious(third)).1.unwrap_err();
    assert_eq!(
        refused.text,
        "podinfo-primary.test cannot be restored: what it ran before is not stored; push a revision that works"
    );
}

#[test]
fn a_primary_that_is_lost_while_it_is_promoted_is_made_from_what_was_stored() {
    let mut ship = Ship::new();
    ship.initialize();
    let before = ship.server.get(DEPLOYMENT, "podinfo-primary")["spec"].clone();
    ship.new_version();
    let (revision, id) = (ship.revision(), ship.id());
    ship.make(&Effect::StorePrevious(revision.clone()));
    ship.make(&Effect::Promote { revision: revision.clone(), id });
    let lost = ship.server.get(DEPLOYMENT, "podinfo-primary").clone();
    ship.server.obey(&crate::object::delete(DEPLOYMENT, &lost));
    assert_eq!(ship.make(&Effect::RestorePrevious(revision)), (1, 2));
    let primary = ship.server.get(DEPLOYMENT, "podinfo-primary");
    assert_eq!(primary["spec"], before);
    assert!(crate::object::is_controlled_by(primary, &ship.canary));
}

#[test]
fn a_stored_config_that_somebody_changed_is_stored_again_while_the_primary_still_has_it() {
    let mut ship = Ship::new();
    ship.initialize();
    ship.new_version();
    let revision = ship.revision();
    ship.make(&Effect::StorePrevious(revision.clone()));
    ship.change(CONFIG_MAP, "settings-primary-previous", |stored| stored["data"]["color"] = "pink".into());
    assert_eq!(ship.make(&Effect::StorePrevious(revision)), (1, 1));
    assert_eq!(ship.server.get(CONFIG_MAP, "settings-primary-previous")["data"]["color"], "red");
}

#[test]
fn what_others_made_is_not_touched() {
    let ship = |owner: Option<(&str, &str)>| {
        let mut ship = Ship::new();
        ship.canary = Canary::test().autoscaled();
        let owners: Vec<Value> = owner
            .map(|(name, uid)| json!({ "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": name, "uid": uid }))
            .into_iter()
            .collect();
        for (kind, name) in [
            (DEPLOYMENT, "podinfo-primary"),
            (SERVICE, "podinfo-canary"),
            (SERVICE, "podinfo-primary"),
            (HPA, "podinfo-primary"),
        ] {
            ship.server.put(
                kind,
                json!({ "kind": kind.kind, "metadata": { "name": name, "namespace": "test", "ownerReferences": owners } }),
            );
        }
        ship.server.put(
            HPA,
            document(
                "{kind: HorizontalPodAutoscaler, metadata: {name: podinfo, namespace: test}, spec: {maxReplicas: 4}}",
            ),
        );
        ship
    };
    let effects = |ship: &Ship| {
        let revision = ship.revision();
        [
            Effect::CreatePrimary(revision.clone()),
            Effect::Promote { revision: revision.clone(), id: "id".into() },
            Effect::StorePrevious(revision.clone()),
            Effect::RestorePrevious(revision),
            Effect::VariantServices,
            Effect::PrimaryAutoscaler { refresh: true },
        ]
    };
    let refusals = |ship: &Ship| {
        for effect in effects(ship) {
            assert!(ship.plan(&effect).1.is_err(), "{effect:?}");
        }
        let found = foreign_objects(&ship.canary, &ship.server.world());
        found.into_iter().map(|foreign| foreign.refusal).collect::<Vec<_>>()
    };

    let found = refusals(&ship(None));
    assert!(found.iter().all(|refusal| refusal.blame == Blame::User));
    let texts: Vec<&str> = found.iter().map(|refusal| refusal.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Deployment podinfo-primary.test exists and no Canary owns it; rename or delete it, its name is needed for the primary",
            "Service podinfo-canary.test exists and no Canary owns it; rename or delete it, or set spec.service.name",
            "Service podinfo-primary.test exists and no Canary owns it; rename or delete it, or set spec.service.name",
            "HorizontalPodAutoscaler podinfo-primary.test exists and no Canary owns it; rename or delete it, its name is needed for the primary's autoscaler",
        ]
    );

    let found = refusals(&ship(Some(("podinfo", "an-older-uid"))));
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|refusal| refusal.blame == Blame::Cluster));
    assert_eq!(
        found[0].text,
        "Deployment podinfo-primary.test belongs to an earlier Canary podinfo.test that was deleted; waiting until it is gone"
    );

    let found = refusals(&ship(Some(("other", "uid-of-other"))));
    assert_eq!((found.len(), found[0].blame), (4, Blame::User));
    assert_eq!(
        found[0].text,
        "Deployment podinfo-primary.test belongs to Canary other.test; delete that Canary, or give one of them another target"
    );

    let mut ours = Ship::new();
    ours.initialize();
    assert_eq!(foreign_objects(&ours.canary, &ours.server.world()), []);
    // A user's apex Service is taken over; one that is about to be collected with its Canary is waited for.
    let apex = |owners: Value| {
        let mut ship = Ship::new();
        ship.server.put(
            SERVICE,
            json!({ "kind": "Service", "metadata": { "name": "podinfo", "namespace": "test", "ownerReferences": owners } }),
        );
        foreign_objects(&ship.canary, &ship.server.world()).len()
    };
    assert_eq!(apex(json!([])), 0);
    let old =
        json!([{ "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": "podinfo", "uid": "an-older-uid" }]);
    assert_eq!(apex(old), 1);
}

#[test]
fn only_the_last_primary_is_kept() {
    let mut ship = Ship::new();
    ship.initialize();
    for image in ["podinfo:6.0.1", "podinfo:6.0.2"] {
        ship.change(DEPLOYMENT, "podinfo", |target| {
            target["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        });
        let (revision, id) = (ship.revision(), ship.id());
        ship.make(&Effect::StorePrevious(revision.clone()));
        ship.make(&Effect::Promote { revision, id });
    }
    let names = ship.server.names(CONTROLLER_REVISION);
    assert_eq!(names.len(), 1);
    let stored = ship.server.get(CONTROLLER_REVISION, names[0]);
    assert_eq!(stored["revision"], 2);
    assert_eq!(stored["data"]["spec"]["template"]["spec"]["containers"][0]["image"], "podinfo:6.0.1");
    assert_eq!(stored["metadata"]["labels"], json!({ "app.kubernetes.io/managed-by": "seaway" }));
    assert_eq!(stored["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_shared_config_outlives_either_of_its_canaries() {
    let mut ship = Ship::new();
    ship.initialize();
    // Another Canary with a target of the same configs.
    ship.canary = Canary::test().named("backend");
    let mut target = document(PODINFO);
    target["metadata"]["name"] = "backend".into();
    target["metadata"]["uid"] = Value::Null;
    ship.server.put(DEPLOYMENT, target);
    let target = ship.server.get(DEPLOYMENT, "backend");
    let revision = config::revision(target, &ship.server.world(), &ship.conventions).unwrap();
    assert_eq!(ship.make(&Effect::CreatePrimary(revision)), (3, 4));
    let owners = &ship.server.get(CONFIG_MAP, "settings-primary")["metadata"]["ownerReferences"];
    let owners: Vec<_> = owners
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| (owner["name"].as_str(), owner["controller"].as_bool()))
        .collect();
    assert_eq!(owners, [(Some("backend"), Some(true)), (Some("podinfo"), Some(false))]);
}

#[test]
fn what_was_not_analysed_is_not_promoted() {
    let mut ship = Ship::new();
    ship.initialize();
    ship.new_version();
    let (revision, id) = (ship.revision(), ship.id());
    let effect = Effect::Promote { revision, id };
    // The config changes between the look at its checksum and the reading of its data.
    let world = ship.server.world();
    let nothing = Fetched::new();
    let context = |fetched| EffectContext {
        canary: &ship.canary,
        world: &world,
        router: &GatewayApi,
        conventions: &ship.conventions,
        fetched,
    };
    let mut fetched = ship.server.fetch(&needs(&effect, &context(&nothing)));
    for config in fetched.values_mut() {
        config["data"]["color"] = "green".into();
    }
    let refusal = changes(&effect, &context(&fetched)).unwrap_err();
    assert_eq!(refusal.text, "ConfigMap settings.test changed since it was looked at; it is looked at again");
    // The target changes.
    ship.change(DEPLOYMENT, "podinfo", |target| target["spec"]["template"]["spec"]["hostNetwork"] = true.into());
    let (_, refused) = ship.plan(&effect);
    assert_eq!(refused.unwrap_err().text, "podinfo.test changed since it was looked at; it is looked at again");
}

#[test]
fn a_deletion_with_revert_gives_everything_back() {
    let mut ship = Ship::new();
    ship.initialize();
    assert_eq!(ship.make(&Effect::ScaleToPrimary), (0, 1));
    assert_eq!(ship.make(&Effect::ApexToTarget), (0, 1));
    let announce = Effect::Announce(Destination::Apex);
    assert_eq!((ship.make(&announce), ship.make(&announce)), ((0, 1), (0, 0)));
    assert_eq!(ship.make(&Effect::RouteToApex), (0, 1));
    for effect in [Effect::ApexToTarget, Effect::RouteToApex] {
        assert_eq!(ship.make(&effect), (0, 0), "{effect:?}");
    }
    for object in [ship.server.get(SERVICE, "podinfo"), ship.server.get(HTTP_ROUTE, "podinfo")] {
        assert!(object["metadata"].get("ownerReferences").is_some(), "ours until the end, so that edits are repaired");
    }
    assert_eq!(ship.make(&Effect::Release), (0, 2));
    assert_eq!(ship.make(&Effect::Release), (0, 0));
    let target = ship.server.get(DEPLOYMENT, "podinfo");
    assert_eq!(target["spec"]["replicas"], 2);
    for object in [ship.server.get(SERVICE, "podinfo"), ship.server.get(HTTP_ROUTE, "podinfo")] {
        assert!(object["metadata"].get("ownerReferences").is_none());
    }
}

#[test]
fn a_target_that_is_gone() {
    let ship = Ship { canary: Canary::test(), server: Server::default(), conventions: Conventions::default() };
    for effect in [Effect::ScaleUp, Effect::ScaleToPrimary, Effect::RestorePrevious(Revision::default())] {
        let (_, refused) = ship.plan(&effect);
        assert!(refused.unwrap_err().text.contains("not found"), "{effect:?}");
    }
    // Upkeep that cannot be done now must not stop what comes after it.
    for effect in [Effect::VariantServices, Effect::ApexToPrimary, Effect::ScaleToZero] {
        assert_eq!(ship.plan(&effect).1, Ok(Vec::new()), "{effect:?}");
    }
}

#[test]
fn an_autoscaler_that_is_gone_stops_only_its_own_refresh() {
    let mut ship = Ship::new();
    ship.canary = Canary::test().autoscaled();
    ship.initialize();
    assert_eq!(ship.plan(&Effect::PrimaryAutoscaler { refresh: false }).1, Ok(Vec::new()));
    let refused = ship.plan(&Effect::PrimaryAutoscaler { refresh: true }).1.unwrap_err();
    assert!(refused.text.starts_with("HorizontalPodAutoscaler podinfo.test get query error: "), "{refused}");
}

#[test]
fn a_target_takes_over_at_the_size_its_autoscaler_allows() {
    let mut ship = Ship::new();
    ship.canary = Canary::test().autoscaled();
    ship.initialize();
    ship.change(DEPLOYMENT, "podinfo-primary", |primary| primary["spec"]["replicas"] = 9.into());
    ship.server.put(
        HPA,
        document("{kind: HorizontalPodAutoscaler, metadata: {name: podinfo, namespace: test}, spec: {maxReplicas: 4}}"),
    );
    ship.make(&Effect::ScaleToPrimary);
    assert_eq!(ship.server.get(DEPLOYMENT, "podinfo")["spec"]["replicas"], 4);
}
