//! Compares an answer with what the OpenAPI document says: status, media type, shape.

use serde_json::Value;

use crate::support::Answer;

/// The served description.
pub(crate) struct Spec(pub(crate) Value);

impl Spec {
    pub(crate) fn load() -> Self {
        Self(serde_json::to_value(flare_http::openapi()).unwrap())
    }

    /// The operation of a request, if it is described.
    pub(crate) fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let path = path.split('?').next().unwrap_or_default();
        let paths = self.0["paths"].as_object().unwrap();
        let (_, item) = paths.iter().find(|(template, _)| matches(template, path))?;
        item.get(method.to_ascii_lowercase())
    }

    /// Insists that the answer is one of those described.
    #[track_caller]
    pub(crate) fn check(&self, method: &str, path: &str, answer: &Answer) {
        assert!(answer.header("x-request-id").is_some(), "{method} {path}: {answer:?}");
        let Some(operation) = self.operation(method, path) else {
            assert!(matches!(answer.status, 404 | 405 | 401), "{method} {path}: {answer:?}");
            return self.shape(&self.0["components"]["schemas"]["Error"], answer);
        };
        let described = &operation["responses"][answer.status.to_string()];
        assert!(described.is_object(), "not described: {method} {path}: {answer:?}");
        if matches!(answer.status, 429 | 503) {
            assert!(answer.header("retry-after").is_some(), "{method} {path}: {answer:?}");
        }
        // Of several media types the one it has.
        let said = answer.header("content-type").unwrap_or_default();
        let content = described["content"].as_object();
        let fits = |(media, _): &(&String, &Value)| said.starts_with(media.as_str());
        let found = content.and_then(|it| it.iter().find(fits).or_else(|| it.iter().next()));
        match found {
            None => assert_eq!(answer.body, "", "{method} {path}: {answer:?}"),
            Some((media, content)) if media == "application/json" => {
                assert_eq!(answer.header("content-type"), Some("application/json"));
                self.shape(&content["schema"], answer);
            }
            Some((media, _)) => {
                assert!(answer.header("content-type").unwrap().starts_with(media.as_str()));
            }
        }
    }

    #[track_caller]
    fn shape(&self, schema: &Value, answer: &Answer) {
        if let Err(reason) = self.fits(schema, &answer.json()) {
            panic!("{reason}: {answer:?}");
        }
    }

    /// As much of JSON Schema as the document uses.
    pub(crate) fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            let named = &self.0["components"]["schemas"][name];
            return self.fits(named, value).map_err(|reason| format!("{name}: {reason}"));
        }
        if let Some(options) = schema["oneOf"].as_array() {
            let fitting = options.iter().filter(|it| self.fits(it, value).is_ok()).count();
            return if fitting == 1 { Ok(()) } else { Err(format!("{fitting} fit {value}")) };
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        if !kinds.iter().any(|kind| is(kind, value)) {
            return Err(format!("{value} is not {kinds:?}"));
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            return Err(format!("{value} is none of {words:?}"));
        }
        let number = value.as_f64();
        for (bound, below) in [("minimum", true), ("maximum", false)] {
            if let (Some(bound), Some(number)) = (schema[bound].as_f64(), number)
                && (if below { number < bound } else { number > bound })
            {
                return Err(format!("{value} is beyond {bound}"));
            }
        }
        for item in value.as_array().into_iter().flatten() {
            self.fits(&schema["items"], item)?;
        }
        self.fields(schema, value)
    }

    fn fields(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let Some(fields) = value.as_object() else { return Ok(()) };
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                return Err(format!("{name} is missing"));
            }
        }
        for (name, field) in fields {
            let schema = match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(false)) => return Err(format!("{name} is unknown")),
                (Value::Null, others) => others,
                (known, _) => known,
            };
            self.fits(schema, field).map_err(|reason| format!("{name}: {reason}"))?;
        }
        Ok(())
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn matches(template: &str, path: &str) -> bool {
    if let Some(before) = template.strip_suffix("{url}") {
        return path.len() > before.len() && path.starts_with(before);
    }
    let (wanted, given) = (template.split('/'), path.split('/'));
    let fits = |(wanted, given): (&str, &str)| wanted.starts_with('{') || wanted == given;
    template.split('/').count() == path.split('/').count() && wanted.zip(given).all(fits)
}
