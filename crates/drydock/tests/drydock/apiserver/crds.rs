//! Custom resources: definition, validation, pruning, defaulting, rules, and the Gateway API that is always there.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::Condition;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::{dynamic, refused, server, settle};

fn definition() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "boats.seaway.dev"},
        "spec": {
            "group": "seaway.dev", "scope": "Namespaced", "names": {"kind": "Boat", "plural": "boats", "shortNames": ["bt"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.crew"}},
                "additionalPrinterColumns": [
                    {"name": "Crew", "type": "integer", "jsonPath": ".spec.crew"},
                    {"name": "Sail", "type": "string", "jsonPath": ".spec.sail"},
                ],
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    }))
    .unwrap()
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object", "required": ["sail"],
                "x-kubernetes-validations": [
                    {"rule": "self.crew <= 10 || self.sail == 'square'", "message": "a big crew needs a square sail"},
                ],
                "properties": {
                    "sail": {"type": "string", "enum": ["square", "lateen"]},
                    "crew": {"type": "integer", "minimum": 1, "default": 2},
                    "hull": {"type": "string", "x-kubernetes-validations": [
                        {"rule": "self == oldSelf", "message": "a hull is for life"},
                    ]},
                    "flag": {"type": "string", "nullable": true},
                    "cargo": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "masts": {
                        "type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"}, "height": {"type": "integer", "default": 9},
                        }},
                    },
                },
            },
            "status": {"type": "object", "properties": {"crew": {"type": "integer"}}},
        },
    })
}

async fn boats(client: &Client) -> Api<DynamicObject> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let made = definitions.create(&PostParams::default(), &definition()).await.unwrap();
    // As on a real server the answer comes before the resource does; whoever looks finds it there.
    let established =
        |found: &CustomResourceDefinition| kube::runtime::conditions::is_crd_established().matches_object(Some(found));
    assert!(!established(&made) && established(&definitions.get("boats.seaway.dev").await.unwrap()));
    dynamic(client, "seaway.dev", "v1", "Boat", "boats")
}

fn boat(spec: &Value) -> DynamicObject {
    serde_json::from_value(
        json!({"apiVersion": "seaway.dev/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": spec}),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_pruned_and_defaulted() {
    let client = server().client("test");
    let api = boats(&client).await;
    let spec = json!({"sail": "square", "oars": 4, "cargo": {"rum": [1, null]}, "masts": [{"name": "main", "x": 1}]});
    let made = api.create(&PostParams::default(), &boat(&spec)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({"sail": "square", "cargo": {"rum": [1, null]}, "masts": [{"name": "main", "height": 9}], "crew": 2})
    );
    assert_eq!(made.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn wrong_objects_are_refused_with_the_texts_of_a_real_server() {
    let client = server().client("test");
    let api = boats(&client).await;
    // What blocks the rules of the schema is followed by a note that they were not asked.
    let unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                     correct the existing errors to complete validation";
    for (spec, expected) in [
        (json!({}), "[spec.sail: Required value, REST]"),
        (
            json!({"sail": "round"}),
            "[spec.sail: Unsupported value: \"round\": supported values: \"square\", \"lateen\", REST]",
        ),
        (
            json!({"sail": "square", "crew": 0}),
            "spec.crew: Invalid value: 0: spec.crew in body should be greater than or equal to 1",
        ),
        (
            json!({"sail": "square", "crew": "x"}),
            "[spec.crew: Invalid value: \"string\": spec.crew in body must be of type integer: \"string\", .spec.crew: \
             Invalid value: 0: .spec.crew accessor error: x is of the type string, expected int64, REST]",
        ),
        (json!({"sail": "lateen", "crew": 11}), "spec: Invalid value: a big crew needs a square sail"),
        (
            json!({"sail": "square", "masts": [{"name": "a"}, {"name": "a"}]}),
            "spec.masts[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({"sail": "square", "masts": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]}),
            "[spec.masts: Too many: 4: must have at most 3 items, REST]",
        ),
    ] {
        let expected = expected.replace("REST", unchecked);
        let status = refused(api.create(&PostParams::default(), &boat(&spec)).await);
        assert_eq!(status.code, 422);
        assert_eq!(status.message, format!("Boat.seaway.dev \"a\" is invalid: {expected}"));
    }
}

#[tokio::test(start_paused = true)]
async fn null_means_left_out_unless_the_schema_takes_it() {
    let client = server().client("test");
    let api = boats(&client).await;
    let spec = json!({"sail": "square", "crew": null, "hull": null, "flag": null, "cargo": {"rum": null}, "masts": [{"name": "main", "height": null}]});
    let made = api.create(&PostParams::default(), &boat(&spec)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({"sail": "square", "flag": null, "cargo": {"rum": null}, "masts": [{"name": "main", "height": 9}], "crew": 2})
    );
    let status = refused(api.create(&PostParams::default(), &boat(&json!({"sail": null}))).await);
    assert!(status.message.contains("spec.sail: Required value"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_blind_replacement_is_refused() {
    let client = server().client("test");
    let api = boats(&client).await;
    let made = api.create(&PostParams::default(), &boat(&json!({"sail": "square"}))).await.unwrap();
    let mut blind = made.clone();
    blind.metadata.resource_version = None;
    let status = refused(api.replace("a", &PostParams::default(), &blind).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            422,
            "boats.seaway.dev \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    );
    assert_eq!(refused(api.replace_status("a", &PostParams::default(), &blind).await).code, 422);
    api.replace("a", &PostParams::default(), &made).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tightened_definition_leaves_what_does_not_change_alone() {
    let client = server().client("test");
    let api = boats(&client).await;
    let masts = json!([{"name": "fore"}, {"name": "main", "height": 9}]);
    let spec = json!({"sail": "lateen", "crew": 9, "hull": "oak", "masts": masts});
    api.create(&PostParams::default(), &boat(&spec)).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut tighter = serde_json::to_value(definitions.get("boats.seaway.dev").await.unwrap()).unwrap();
    let boat = tighter.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap();
    boat["required"] = json!(["sail", "flag"]);
    boat["properties"]["crew"]["maximum"] = json!(5);
    boat["properties"]["masts"]["items"]["properties"]["height"] =
        json!({"type": "integer", "maximum": 7, "default": 7});
    boat["properties"]["hull"]["x-kubernetes-validations"] = json!([{"rule": "self != 'oak'", "message": "no oak"}]);
    definitions
        .replace("boats.seaway.dev", &PostParams::default(), &serde_json::from_value(tighter).unwrap())
        .await
        .unwrap();
    let patch = async |patch: Value| api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await;
    patch(json!({"metadata": {"labels": {"painted": "yes"}}})).await.unwrap();
    api.patch_status("a", &PatchParams::default(), &Patch::Merge(json!({"status": {"crew": 9}}))).await.unwrap();
    let status = refused(patch(json!({"spec": {"sail": "square"}})).await);
    assert!(status.message.contains("spec.flag: Required value"), "its parent changed: {}", status.message);
    assert!(!status.message.contains("crew"), "its value did not: {}", status.message);
    patch(json!({"spec": {"sail": "square", "flag": "red"}})).await.unwrap();
    let status = refused(patch(json!({"spec": {"crew": 8}})).await);
    assert!(status.message.contains("spec.crew: Invalid value: 8"), "{}", status.message);
    patch(json!({"spec": {"hull": "elm"}})).await.unwrap();
    let status = refused(patch(json!({"spec": {"hull": "oak"}})).await);
    assert!(status.message.contains("spec.hull: Invalid value: \"oak\": no oak"), "{}", status.message);
    patch(json!({"spec": {"crew": 5}})).await.unwrap();
    let before = json!([{"name": "mizzen", "height": 3}, {"name": "fore", "height": 9}, {"name": "main", "height": 9}]);
    patch(json!({"spec": {"masts": before}})).await.unwrap();
    let status = refused(patch(json!({"spec": {"masts": [{"name": "fore", "height": 8}]}})).await);
    assert!(status.message.contains("spec.masts[0].height: Invalid value: 8"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn rules_see_the_old_object() {
    let client = server().client("test");
    let api = boats(&client).await;
    api.create(&PostParams::default(), &boat(&json!({"sail": "square", "hull": "oak"}))).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"hull": "steel"}}));
    let status = refused(api.patch("a", &PatchParams::default(), &patch).await);
    assert!(status.message.contains("spec.hull: Invalid value: \"steel\": a hull is for life"), "{}", status.message);
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"crew": 3}}))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn status_and_scale_are_endpoints_of_their_own() {
    let client = server().client("test");
    let api = boats(&client).await;
    let mut asked = boat(&json!({"sail": "square"}));
    asked.data["status"] = json!({"crew": 9});
    let made = api.create(&PostParams::default(), &asked).await.unwrap();
    assert_eq!(made.data.get("status"), None);
    let patch = Patch::Merge(json!({"status": {"crew": 2, "x": 1}, "spec": {"crew": 5}}));
    let seen = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((&seen.data["status"], seen.metadata.generation), (&json!({"crew": 2}), Some(1)));
    let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
    let scale = api.patch_scale("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().replicas), (Some(7), 2));
    assert_eq!(api.get("a").await.unwrap().data["spec"]["crew"], 7);
}

#[tokio::test(start_paused = true)]
async fn apply_knows_list_keys_and_strategic_patches_are_refused() {
    let client = server().client("test");
    let api = boats(&client).await;
    let masts = |names: &[&str]| {
        let masts: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        Patch::Apply(boat(&json!({"sail": "square", "masts": masts})))
    };
    api.patch("a", &PatchParams::apply("one"), &masts(&["fore"])).await.unwrap();
    let both = api.patch("a", &PatchParams::apply("two"), &masts(&["main"])).await.unwrap();
    assert_eq!(both.data["spec"]["masts"].as_array().unwrap().len(), 2);
    let status = refused(api.patch("a", &PatchParams::default(), &Patch::Strategic(json!({}))).await);
    assert_eq!(status.code, 415);
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_with_it() {
    let client = server().client("test");
    let api = boats(&client).await;
    api.create(&PostParams::default(), &boat(&json!({"sail": "square"}))).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.delete("boats.seaway.dev", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert!(definitions.get_opt("boats.seaway.dev").await.unwrap().is_none());
    let status = refused(api.list(&ListParams::default()).await);
    assert_eq!((status.code, status.message.as_str()), (404, "404 page not found"));
}

#[tokio::test(start_paused = true)]
async fn wrong_definitions_are_refused() {
    let definitions: Api<CustomResourceDefinition> = Api::all(server().client("test"));
    let mut wrong = definition();
    wrong.metadata.name = Some("boats".into());
    let status = refused(definitions.create(&PostParams::default(), &wrong).await);
    assert!(status.message.contains("must be spec.names.plural+\".\"+spec.group"), "{}", status.message);
    let mut wrong = definition();
    wrong.spec.versions[0].schema = None;
    let status = refused(definitions.create(&PostParams::default(), &wrong).await);
    let why = "spec.versions[0].schema.openAPIV3Schema: Required value";
    assert!(status.message.contains(why), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn names_of_a_group_belong_to_one_definition_until_it_goes() {
    let client = server().client("test");
    boats(&client).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut rival = definition();
    rival.metadata.name = Some("yachts.seaway.dev".into());
    rival.spec.names.plural = "yachts".into();
    definitions.create(&PostParams::default(), &rival).await.unwrap();
    let why = async || {
        let found = definitions.get("yachts.seaway.dev").await.unwrap();
        let conditions = found.status.unwrap().conditions.unwrap();
        conditions.into_iter().map(|condition| condition.reason.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(why().await, ["ListKindConflict", "NotAccepted"]);
    definitions.delete("boats.seaway.dev", &DeleteParams::default()).await.unwrap();
    assert_eq!(why().await, ["NoConflicts", "InitialNamesAccepted"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_objects_that_something_holds() {
    let client = server().client("test");
    let api = boats(&client).await;
    let mut held = boat(&json!({"sail": "square"}));
    held.metadata.finalizers = Some(vec!["seaway.dev/hold".into()]);
    api.create(&PostParams::default(), &held).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.delete("boats.seaway.dev", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert!(definitions.get_opt("boats.seaway.dev").await.unwrap().is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &PatchParams::default(), &release).await.unwrap();
    assert!(definitions.get_opt("boats.seaway.dev").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_gateway_api_is_installed_with_its_rules() {
    let client = server().client("test");
    let routes = dynamic(&client, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes");
    let route = |rules: Value| -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "a"},
            "spec": {"parentRefs": [{"name": "gateway"}], "rules": rules},
        }))
        .unwrap()
    };
    let made = routes
        .create(&PostParams::default(), &route(json!([{"backendRefs": [{"name": "a", "port": 80}]}])))
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"]["rules"],
        json!([{
            "backendRefs": [{"name": "a", "port": 80, "group": "", "kind": "Service", "weight": 1}],
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        }])
    );
    let older = dynamic(&client, "gateway.networking.k8s.io", "v1beta1", "HTTPRoute", "httproutes");
    let seen = older.get("a").await.unwrap();
    assert_eq!(
        (seen.types.unwrap().api_version.as_str(), seen.metadata.resource_version),
        ("gateway.networking.k8s.io/v1beta1", made.resource_version())
    );
    let patch = Patch::Merge(json!({"spec": {"hostnames": ["a.example.com"]}}));
    older.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(routes.get("a").await.unwrap().data["spec"]["hostnames"], json!(["a.example.com"]));
    let status =
        refused(routes.create(&PostParams::default(), &route(json!([{"backendRefs": [{"name": "a"}]}]))).await);
    assert!(status.message.contains("Must have port for Service reference"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn our_own_definitions_are_accepted_as_applied() {
    let server = server();
    let client = server.client("test");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in seaway_api::crds::crds() {
        let name = definition.name_any();
        for _ in 0..2 {
            definitions.patch(&name, &PatchParams::apply("kubectl"), &Patch::Apply(&definition)).await.unwrap();
        }
        assert_eq!(definitions.get(&name).await.unwrap().metadata.generation, Some(1), "{name} is stable");
    }
    let canaries = dynamic(&client, "flagger.app", "v1beta1", "Canary", "canaries");
    let spec = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
        "service": {"port": 9898},
        "analysis": {"interval": "1m", "threshold": 5, "maxWeight": 50, "stepWeight": 10},
    });
    let canary =
        json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary", "metadata": {"name": "podinfo"}, "spec": spec});
    let made = canaries.patch("podinfo", &PatchParams::apply("kubectl"), &Patch::Apply(canary)).await.unwrap();
    assert_eq!((&made.data["spec"], made.metadata.generation), (&spec, Some(1)));
    let status = json!({"status": {"phase": "Initializing", "canaryWeight": 0, "failedChecks": 0, "iterations": 0}});
    let seen = canaries.patch_status("podinfo", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    assert_eq!((&seen.data["status"], seen.metadata.generation), (&status["status"], Some(1)));
    let wrong = Patch::Merge(json!({"status": {"phase": "Sailing"}}));
    assert_eq!(refused(canaries.patch_status("podinfo", &PatchParams::default(), &wrong).await).code, 422);
}
