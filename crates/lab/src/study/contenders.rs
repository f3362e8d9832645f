//! Owns the contenders of a study file, each with its settings checked by its adapter. Start reading at
//! [`contenders`].

use record::{Contender, Settings};
use toml::Spanned;

use super::axes::{Axis, Makes};
use super::keys::{Section, StudySource, setting};
use super::{Form, StudyError, work};
use crate::adapters::{self, Adapter};

pub(super) const CONTENDER: [&str; 5] = ["name", "server", "settings", "work", "only"];

/// A contender, and the places of its keys in the file.
struct LocatedContender<'a> {
    section: &'a Section<'a>,
    adapter: &'static Adapter,
    contender: Contender,
    /// Places of its settings, including those from an axis.
    places: Vec<Spanned<String>>,
}

/// Every contender, multiplied by the axes that make contenders.
pub(super) fn contenders(
    top: &Section<'_>,
    axes: &[Axis],
    form: Form,
    source: StudySource<'_>,
) -> Result<Vec<Contender>, StudyError> {
    const EXAMPLE: &str = "[[contender]] with name and server, at least twice";
    let sections = top.sections("contender", "[[contender]]", &CONTENDER)?;
    let mut typed = Vec::new();
    let mut applied = vec![false; axes.len()];
    for section in &sections {
        let Some(one) = read(section, &typed, axes, form, source)? else { continue };
        let mut all = vec![one];
        for (axis, applied) in axes.iter().zip(&mut applied) {
            if axis.makes == Makes::Contenders && axis.applies_to(&all[0].contender, all[0].adapter)
            {
                *applied = true;
                all = all.iter().flat_map(|one| along(one, axis)).collect();
            }
        }
        typed.extend(all);
    }
    let idle = axes
        .iter()
        .zip(&applied)
        .find(|(axis, applied)| axis.makes == Makes::Contenders && !**applied);
    if let Some((axis, _)) = idle {
        let servers = typed.iter().filter_map(|one| adapters::named(&one.contender.server).ok());
        let settings: Vec<&str> =
            servers.flat_map(|adapter| adapter.settings.iter().map(|spec| spec.name)).collect();
        return Err(axis.applies_to_nobody(&settings, source));
    }
    if typed.len() < 2 {
        return Err(top
            .error(format!("a study needs at least two contenders, got {}", typed.len()))
            .with_help(format!("write {EXAMPLE}")));
    }
    typed.iter().try_for_each(|one| check(one, source))?;
    Ok(typed.into_iter().map(|one| one.contender).collect())
}

fn read<'a>(
    section: &'a Section<'a>,
    others: &[LocatedContender<'_>],
    axes: &[Axis],
    form: Form,
    source: StudySource<'_>,
) -> Result<Option<LocatedContender<'a>>, StudyError> {
    let name = section.text("name")?.ok_or_else(|| section.missing("name", "name = \"nginx\""))?;
    let taken = others.iter().any(|other| other.contender.name == *name.get_ref());
    if taken || name.get_ref().trim().is_empty() {
        return Err(source
            .error(
                name.span(),
                format!("`name` must be unique and not empty, got `{}`", name.get_ref()),
            )
            .with_help("give each contender its own name"));
    }
    let server =
        section.text("server")?.ok_or_else(|| section.missing("server", "server = \"nginx\""))?;
    let adapter = adapters::named(server.get_ref())
        .map_err(|error| source.error(server.span(), error.to_string()))?;
    let mut settings = Settings::new();
    let typed = section.free("settings")?;
    for (key, value) in &typed {
        settings.insert(key.get_ref().clone(), setting(key.get_ref(), value, source)?);
    }
    let work = section.section("work", "[contender.work]", &work::KEYS)?;
    let work =
        work.map_or_else(|| Ok(record::Change::default()), |one| work::change(&one, source))?;
    let Some(cells) = super::axes::only(section, axes, form, source)? else { return Ok(None) };
    let contender =
        Contender { name: name.into_inner(), server: server.into_inner(), settings, work, cells };
    let places = typed.into_iter().map(|(key, _)| key).collect();
    Ok(Some(LocatedContender { section, adapter, contender, places }))
}

/// One contender for each point of the axis.
fn along<'a>(one: &LocatedContender<'a>, axis: &Axis) -> Vec<LocatedContender<'a>> {
    let at = |point: &super::axes::Point| {
        let mut contender = one.contender.clone();
        contender.name = format!("{} {}", contender.name, point.label);
        contender.work = point.change.on_top_of(&contender.work);
        let mut places = one.places.clone();
        for (key, value) in &point.settings {
            contender.settings.insert(key.get_ref().clone(), value.clone());
            places.push(key.clone());
        }
        LocatedContender { section: one.section, adapter: one.adapter, contender, places }
    };
    axis.points.iter().map(at).collect()
}

fn check(one: &LocatedContender<'_>, source: StudySource<'_>) -> Result<(), StudyError> {
    let Contender { name, settings, .. } = &one.contender;
    let Err(error) = one.adapter.check(settings) else { return Ok(()) };
    let culprit = culprit(one.adapter, settings);
    let place = one.places.iter().rfind(|key| culprit.as_ref() == Some(key.get_ref()));
    let message = format!("contender `{name}`: {error}");
    Err(match place {
        Some(key) => source.error(key.span(), message),
        None => one.section.error(message),
    })
}

/// The setting without which the others are valid; `None` if no single one is at fault.
fn culprit(adapter: &Adapter, settings: &Settings) -> Option<String> {
    let without = |name: &str| {
        let mut rest = settings.clone();
        rest.remove(name);
        rest
    };
    settings.keys().find(|name| adapter.check(&without(name)).is_ok()).cloned()
}
