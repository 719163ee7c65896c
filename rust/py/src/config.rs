//! Converts the result of `options.to_config` to the core's `Config`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use streamweld_core::Config;
use streamweld_core::model::config::Tool;
use streamweld_core::model::limits::LimitName;
use streamweld_core::model::limits::Limits;
use streamweld_core::model::policy::Action;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::CloseCallsAt;
use streamweld_core::model::policy::Policy;
use streamweld_core::model::policy::SwitchValue;
use streamweld_core::model::spec::Code;

use crate::errors;

/// The policy for each base, and the default limits, created once.
static POLICIES: LazyLock<[Policy; 3]> =
    LazyLock::new(|| [Base::Standard, Base::Strict, Base::Salvage].map(Policy::new));
static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

/// The default configuration, shared by all streams.
static USUAL: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);

/// All diagnostic codes, keyed by name.
static CODES: LazyLock<HashMap<&'static str, Code>> =
    LazyLock::new(|| Code::all().map(|code| (code.name(), code)).collect());

/// The tables of a policy, and the policy built from them.
#[derive(Debug)]
struct Tables {
    /// The table of actions and the table of switches.
    tables: [Option<Py<PyAny>>; 2],
    policy: Policy,
}

/// The tables that were read last. The tables are cached because a policy always returns the same two immutable tables
/// (`options.Policy.config`), and most streams use the same policy as the previous stream.
static LAST: Mutex<Option<Tables>> = Mutex::new(None);

/// Locks `LAST`. The lock is held only while the tables are read or replaced.
fn last() -> MutexGuard<'static, Option<Tables>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tables that were already converted, each with the resulting configuration. `options.to_config` returns the same
/// table for equal policies and limits, and that table is never changed. Only tables without options for a single
/// stream are stored.
static RESOLVED: Mutex<Vec<(Py<PyDict>, Arc<Config>)>> = Mutex::new(Vec::new());

/// Maximum number of configurations to keep. Most processes use one or two sets of options.
const KEPT: usize = 8;

/// Locks `RESOLVED`. The lock is held only while a configuration is read or stored.
fn resolved() -> MutexGuard<'static, Vec<(Py<PyDict>, Arc<Config>)>> {
    RESOLVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the options for one stream. A table that was used recently is not converted again.
pub(crate) fn read(config: &Bound<'_, PyDict>) -> PyResult<Arc<Config>> {
    let same = |(table, _): &&(Py<PyDict>, _)| table.is(config);
    if let Some((_, known)) = resolved().iter().find(same) {
        return Ok(Arc::clone(known));
    }
    let made = read_table(config)?;
    let lone = made.tools.is_none()
        && made.known_call_ids.is_empty()
        && made.content_type.is_none()
        && made.seed.is_none();
    if lone {
        let mut tables = resolved();
        let oldest = (tables.len() == KEPT).then(|| tables.remove(0));
        tables.push((config.clone().unbind(), Arc::clone(&made)));
        // Release the lock before dropping the oldest configuration, which may run Python code.
        drop(tables);
        drop(oldest);
    }
    Ok(made)
}

/// Converts a table. Returns a `UsageError` for an unknown name or value.
fn read_table(config: &Bound<'_, PyDict>) -> PyResult<Arc<Config>> {
    let py = config.py();
    let config = Config {
        policy: policy(config)?,
        limits: match member(config, intern!(py, "limits"))? {
            Some(limits) => read_limits(limits.cast::<PyDict>()?)?,
            None => LIMITS.clone(),
        },
        tools: member(config, intern!(py, "tools"))?
            .map(|tools| read_tools(tools.cast::<PyDict>()?, config))
            .transpose()?,
        known_call_ids: strings(config, intern!(py, "known_call_ids"))?,
        content_type: word(config, intern!(py, "content_type"))?,
        seed: word(config, intern!(py, "seed"))?,
        text_calls: shared_text(config, intern!(py, "text_calls"))?,
        text_call_tools: member(config, intern!(py, "text_call_tools"))?
            .map(|tools| read_schemas(tools.cast::<PyDict>()?))
            .transpose()?,
    };
    Ok(if config == **USUAL {
        Arc::clone(&USUAL)
    } else {
        Arc::new(config)
    })
}

/// Returns a member unless it is None.
fn member<'py>(
    config: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(config.get_item(name)?.filter(|value| !value.is_none()))
}

fn word(config: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> PyResult<Option<String>> {
    member(config, name)?
        .map(|value| value.extract())
        .transpose()
}

/// Strings that `shared_text` returned, with the most recent string first. The strings are cached because a policy
/// always returns the same string.
static TEXTS: Mutex<Vec<(Py<PyString>, Arc<str>)>> = Mutex::new(Vec::new());

/// Returns the text of a member, or `None` if it is missing. All streams that use the same policy share one copy.
fn shared_text(
    config: &Bound<'_, PyDict>,
    name: &Bound<'_, PyString>,
) -> PyResult<Option<Arc<str>>> {
    let Some(value) = member(config, name)? else {
        return Ok(None);
    };
    let value = value.cast_into::<PyString>()?;
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, text)) = texts.iter().find(|(known, _)| known.is(&value)) {
        return Ok(Some(Arc::clone(text)));
    }
    let text: Arc<str> = Arc::from(value.to_str()?);
    texts.truncate(KEPT - 1);
    texts.insert(0, (value.unbind(), Arc::clone(&text)));
    Ok(Some(text))
}

fn strings(config: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> PyResult<Vec<String>> {
    Ok(member(config, name)?
        .map(|value| value.extract())
        .transpose()?
        .unwrap_or_default())
}

fn refuse(config: &Bound<'_, PyAny>, name: &str) -> PyErr {
    errors::usage(
        config.py(),
        &format!("config: {name} is not known here, or its value is not"),
    )
}

fn policy(config: &Bound<'_, PyDict>) -> PyResult<Policy> {
    let py = config.py();
    let [standard, ..] = &*POLICIES;
    let base = match word(config, intern!(py, "base"))? {
        Some(base) => {
            let known = POLICIES.iter().find(|policy| policy.base.name() == base);
            known.ok_or_else(|| refuse(config, "base"))?
        }
        None => standard,
    };
    let mut policy = named(config, base)?;
    if let Some(value) = member(config, intern!(py, "inline_reasoning"))? {
        policy.inline_reasoning = value.extract()?;
    }
    if let Some(at) = word(config, intern!(py, "close_calls_at"))? {
        policy.close_calls_at =
            CloseCallsAt::from_name(&at).ok_or_else(|| refuse(config, "close_calls_at"))?;
    }
    Ok(policy)
}

/// Returns a copy of the base policy with the actions and switches of the config.
fn named(config: &Bound<'_, PyDict>, base: &Policy) -> PyResult<Policy> {
    let py = config.py();
    let tables = [
        member(config, intern!(py, "actions"))?,
        member(config, intern!(py, "switches"))?,
    ];
    let same = |known: &&Tables| {
        let mut both = known.tables.iter().zip(&tables);
        let address = |table: &Option<_>| table.as_ref().map(Py::as_ptr);
        known.policy.base == base.base
            && both.all(|(known, table)| address(known) == table.as_ref().map(Bound::as_ptr))
    };
    if let Some(known) = last().as_ref().filter(same) {
        return Ok(known.policy.clone());
    }
    let mut policy = base.clone();
    let [actions, switches] = &tables;
    if let Some(actions) = actions {
        read_actions(config, actions.cast()?, &mut policy)?;
    }
    if let Some(switches) = switches {
        read_switches(config, switches.cast()?, &mut policy)?;
    }
    let read = Tables {
        tables: tables.map(|table| table.map(Bound::unbind)),
        policy: policy.clone(),
    };
    // Release the lock before dropping the previous tables, which may run Python code.
    let others = last().replace(read);
    drop(others);
    Ok(policy)
}

fn read_actions(
    config: &Bound<'_, PyDict>,
    actions: &Bound<'_, PyDict>,
    policy: &mut Policy,
) -> PyResult<()> {
    // Usually, all codes are present and in order.
    let mut codes = Code::all();
    for (code, action) in actions {
        let (code, action) = (code.cast::<PyString>()?, action.cast::<PyString>()?);
        let (code, action) = (code.to_str()?, action.to_str()?);
        let next = codes.next().filter(|next| next.name() == code);
        let known = next.or_else(|| CODES.get(code).copied());
        let set = match (known, Action::from_name(action)) {
            (Some(code), Some(action)) => policy.set_action(code, action),
            _ => false,
        };
        if !set {
            return Err(refuse(config, code));
        }
    }
    Ok(())
}

fn read_switches(
    config: &Bound<'_, PyDict>,
    switches: &Bound<'_, PyDict>,
    policy: &mut Policy,
) -> PyResult<()> {
    for (name, value) in switches {
        let name = name.cast::<PyString>()?;
        let name = name.to_str()?;
        let set = if let Ok(flag) = value.cast::<PyBool>() {
            policy.switches.set(name, SwitchValue::Flag(flag.is_true()))
        } else {
            policy
                .switches
                .set(name, SwitchValue::Word(value.cast::<PyString>()?.to_str()?))
        };
        if !set {
            return Err(refuse(config, name));
        }
    }
    Ok(())
}

/// Returns the limit with this name.
pub(crate) fn limit_name(py: Python<'_>, name: &str) -> PyResult<LimitName> {
    LimitName::from_name(name).ok_or_else(|| errors::usage(py, &format!("unknown limit {name:?}")))
}

/// Returns the default limits, overridden by the given values.
pub(crate) fn read_limits(table: &Bound<'_, PyDict>) -> PyResult<Limits> {
    let mut limits = LIMITS.clone();
    for (name, value) in table {
        let name = name.cast::<PyString>()?;
        let name = name.to_str()?;
        // No counter exceeds 64 bits, so a larger limit is equivalent to no limit.
        let value = match value.extract::<Option<u64>>() {
            Ok(value) => value,
            Err(_) if value.gt(0)? => None,
            Err(error) => return Err(error),
        };
        if !limits.set(name, value) {
            return Err(refuse(table, name));
        }
    }
    Ok(limits)
}

/// `table`: the required parameters of each tool. `config` lists all parameters of the tools that allow no others.
fn read_tools(table: &Bound<'_, PyDict>, config: &Bound<'_, PyDict>) -> PyResult<Vec<Tool>> {
    let properties = member(config, intern!(config.py(), "tool_properties"))?;
    let properties = properties.as_ref().map(|table| table.cast::<PyDict>());
    let properties = properties.transpose()?;
    table
        .iter()
        .map(|(name, required)| {
            let names = properties.map(|table| table.get_item(&name)).transpose()?;
            let names = names.flatten();
            Ok(Tool {
                name: name.extract()?,
                required: required.extract()?,
                properties: names.map(|names| names.extract()).transpose()?,
            })
        })
        .collect()
}

fn read_schemas(table: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Option<String>)>> {
    table
        .iter()
        .map(|(name, schema)| Ok((name.extract()?, schema.extract()?)))
        .collect()
}
