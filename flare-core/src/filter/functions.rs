//! The functions an expression may call: all whose cost and result are no greater than what they are given.

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStyle {
    /// `size(x)`.
    Global,
    /// `x.size()`.
    Member,
}

use CallStyle::{Global, Member};

/// Name, style and the least and the greatest number of arguments, the target of a member apart.
const FUNCTIONS: [(&str, CallStyle, usize, usize); 28] = [
    ("bool", Global, 1, 1),
    ("bytes", Global, 1, 1),
    ("double", Global, 1, 1),
    ("duration", Global, 1, 1),
    ("dyn", Global, 1, 1),
    ("int", Global, 1, 1),
    ("size", Global, 1, 1),
    ("string", Global, 1, 1),
    ("timestamp", Global, 1, 1),
    ("type", Global, 1, 1),
    ("uint", Global, 1, 1),
    ("matches", Global, 2, 2),
    ("contains", Member, 1, 1),
    ("endsWith", Member, 1, 1),
    ("matches", Member, 1, 1),
    ("size", Member, 0, 0),
    ("startsWith", Member, 1, 1),
    ("getDate", Member, 0, 1),
    ("getDayOfMonth", Member, 0, 1),
    ("getDayOfWeek", Member, 0, 1),
    ("getDayOfYear", Member, 0, 1),
    ("getFullYear", Member, 0, 1),
    ("getHours", Member, 0, 1),
    ("getMilliseconds", Member, 0, 1),
    ("getMinutes", Member, 0, 1),
    ("getMonth", Member, 0, 1),
    ("getSeconds", Member, 0, 1),
    // What the parser makes of `exists` and `all`.
    ("@not_strictly_false", Global, 1, 1),
];

/// Macros, and how often they are mistaken for functions: these names are only called in one way.
const MACROS: [(&str, &str); 6] = [
    ("all", "list.all(x, condition)"),
    ("exists", "list.exists(x, condition)"),
    ("exists_one", "list.exists_one(x, condition)"),
    ("filter", "list.filter(x, condition)"),
    ("has", "has(value.field)"),
    ("map", "list.map(x, value)"),
];

/// The names of types, as `type(x) == int` compares them.
pub(super) const TYPES: [&str; 9] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// Why a call is refused, if it is.
pub(super) fn refusal(name: &str, style: CallStyle, arguments: usize) -> Option<String> {
    if let Some((_, usage)) = MACROS.iter().find(|(known, _)| *known == name) {
        return Some(format!("{name} is written {usage}"));
    }
    let same = || FUNCTIONS.iter().filter(|(known, ..)| *known == name);
    if same().any(|(_, its, least, most)| *its == style && (*least..=*most).contains(&arguments)) {
        return None;
    }
    let Some((_, its, least, most)) =
        same().find(|(_, its, ..)| *its == style).or_else(|| same().next())
    else {
        return Some(format!("there is no function {name}"));
    };
    Some(match (its, most) {
        _ if *its == style && least == most => format!("{name} takes {}", counted(*least)),
        _ if *its == style => format!("{name} takes {least} or {}", counted(*most)),
        (Global, 1) => format!("{name} is written {name}(value)"),
        (Global, _) => format!("{name} is written {name}(value, …)"),
        (Member, 0) => format!("{name} is written value.{name}()"),
        (Member, _) => format!("{name} is written value.{name}(…)"),
    })
}

fn counted(arguments: usize) -> String {
    let plural = if arguments == 1 { "" } else { "s" };
    format!("{arguments} argument{plural}")
}
