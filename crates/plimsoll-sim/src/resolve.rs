//! Conversion of a system file to a system: resolves names, checks figures and expands paths.

mod drains;
mod events;
mod holders;
mod paths;
mod service;

use crate::file::{Link, QueueKind, SystemFile};
use crate::instance::Discipline;
use crate::service::{Service, ServiceTime};
use crate::spanned::Spanned;
use crate::system::{
    Choice, DEFAULT_RETRY_NS, GroupSpec, LimitSpec, MAX_GROUPS, Placement, StationSpec, System,
    WhenDown,
};
use crate::system_event::SystemEvent;
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_measure::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of nodes of a group, or of equal elements under one name.
const MAX_COUNT: u32 = 1 << 20;

/// Maximum number of stations, links, caches, logs, limits, token tables and groups of a system.
const MAX_ELEMENTS: usize = 10_000;

/// Maximum number of instances of all stations, all caches, all logs or all limits of a system.
const MAX_INSTANCES: u64 = 1 << 20;

/// Default header size of a link's messages, in bytes.
const DEFAULT_HEADER_BYTES: u32 = 150;

/// Meaning of a name in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Station(u16),
    /// A direction of a link, with its stations for transmission and latency.
    Link {
        transmission: Option<u16>,
        latency: Option<u16>,
        header: u32,
    },
    Cache(u16),
    Log(u16),
    Limit(u16),
    Tokens(u16),
    Path,
}

struct Resolver<'a> {
    file: &'a SystemFile,
    text: &'a str,
    system: System,
    problems: Vec<Problem>,
    /// Elements and paths by name, with the position of their definition.
    names: BTreeMap<&'a str, (Element, Span)>,
    /// Names of elements and paths that occur in a path; other names are unused.
    used: BTreeSet<&'a str>,
    groups: BTreeMap<&'a str, u8>,
    /// Request and reply direction of each link.
    links: BTreeMap<&'a str, [Element; 2]>,
    /// Number of the buffer of each write-back cache, by the number of the cache.
    cache_buffers: BTreeMap<u16, u16>,
    /// Bit mask per buffer of the groups whose node the drain path takes from the buffered operation.
    inherited: BTreeMap<u16, u8>,
    /// Number of path expansions so far, counting repetitions.
    written_out: usize,
}

/// Resolves the names of a system and of additional `events`, and checks the figures.
///
/// # Errors
/// All errors, each with its position.
pub(crate) fn resolve(
    file: &SystemFile,
    source: &Arc<Source>,
    events: &[SystemEvent],
) -> Result<System, Diagnostics> {
    let mut resolver = Resolver {
        file,
        text: &source.text,
        system: System {
            name: source.name.clone(),
            title: file.title.clone(),
            description: file.description.trim().to_owned(),
            ..System::default()
        },
        problems: vec![],
        names: BTreeMap::new(),
        used: BTreeSet::new(),
        groups: BTreeMap::new(),
        links: BTreeMap::new(),
        cache_buffers: BTreeMap::new(),
        inherited: BTreeMap::new(),
        written_out: 0,
    };
    let elements = [
        file.node.len(),
        file.station.len(),
        file.link.len(),
        file.cache.len(),
        file.log.len(),
        file.limit.len(),
        file.tokens.len(),
    ];
    if elements.iter().sum::<usize>() > MAX_ELEMENTS {
        let message = format!("a system has at most {MAX_ELEMENTS} elements");
        let problem = Problem::of_text(0, message);
        return Err(Diagnostics::new(vec![source.clone()], vec![problem]));
    }
    resolver.groups();
    resolver.stations();
    resolver.working_set();
    resolver.holders();
    resolver.limits();
    resolver.paths();
    resolver.events();
    let lines = resolver.more_events(events);
    match resolver.problems.is_empty() {
        true => Ok(resolver.system),
        false => {
            let sources = vec![source.clone(), Source::new("--event", &lines)];
            Err(Diagnostics::new(sources, distinct(resolver.problems)))
        }
    }
}

/// Removes duplicate problems and sorts by position: a path is expanded for every class that uses the path.
fn distinct(problems: Vec<Problem>) -> Vec<Problem> {
    let mut distinct: Vec<Problem> = Vec::with_capacity(problems.len());
    for problem in problems {
        let is_same = |known: &Problem| match problem.whole_text {
            true => known.message == problem.message,
            false => (known.span, &known.label) == (problem.span, &problem.label),
        };
        if !distinct.iter().any(is_same) {
            distinct.push(problem);
        }
    }
    distinct.sort_by_key(|p| (p.span.file, p.whole_text, p.span.start));
    distinct
}

impl<'a> Resolver<'a> {
    fn span<T>(&self, at: &Spanned<T>) -> Span {
        let range = at.span();
        let start = self.text.floor_char_boundary(range.start);
        let end = self.text.floor_char_boundary(range.end).max(start);
        Span {
            file: 0,
            start: start as u32,
            end: end as u32,
        }
    }

    fn problem<T>(&mut self, at: &Spanned<T>, message: impl Into<String>, label: &str) {
        let problem = Problem::new(self.span(at), message, label);
        self.problems.push(problem);
    }

    /// Defines the name of an element. Names are unique.
    fn name(&mut self, name: &'a Spanned<String>, element: Element) {
        let span = self.span(name);
        let text = name.get_ref().as_str();
        self.check_name(name);
        let is_group = self.groups.contains_key(text);
        if self.names.insert(text, (element, span)).is_some() || is_group {
            self.problem(
                name,
                format!("the name `{text}` is given twice"),
                "nodes, elements and paths have names of their own",
            );
        }
    }

    /// Checks that paths, events and URLs can contain a name.
    fn check_name(&mut self, name: &Spanned<String>) {
        let text = name.get_ref().as_str();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if text.is_empty() || !text.chars().all(is_allowed) {
            self.problem(
                name,
                format!("`{text}` is not a name: expected letters of ASCII, digits, `_` and `-`"),
                "this name",
            );
        }
    }

    /// Checks that a number is at least 1.
    fn positive(&mut self, number: &Spanned<u32>, what: &str) -> u32 {
        if *number.get_ref() == 0 {
            self.problem(number, format!("{what} must be at least 1"), "this number");
        }
        (*number.get_ref()).max(1)
    }

    /// Checks a number of equal elements or nodes.
    fn count(&mut self, number: &Spanned<u32>, what: &str) -> u32 {
        let count = self.positive(number, what);
        if count > MAX_COUNT {
            self.problem(
                number,
                format!("{what} must be at most {MAX_COUNT}"),
                "this number",
            );
        }
        count.min(MAX_COUNT)
    }

    fn group(&mut self, node: Option<&Spanned<String>>) -> Option<u8> {
        let node = node?;
        let found = self.groups.get(node.get_ref().as_str()).copied();
        if found.is_none() {
            let problem = Problem::new(
                self.span(node),
                format!("`{}` is not a group of nodes", node.get_ref()),
                "not the name of a table [node.…]",
            );
            let problem = problem.suggest(node.get_ref(), self.groups.keys().copied());
            self.problems.push(problem);
        }
        found
    }

    fn groups(&mut self) {
        for (i, (name, node)) in self.file.node.iter().enumerate() {
            if i == MAX_GROUPS {
                self.problem(
                    name,
                    format!("a system has at most {MAX_GROUPS} groups of nodes"),
                    "one too many",
                );
                return;
            }
            self.check_name(name);
            let count = self.count(&node.count, "the number of nodes");
            self.groups.insert(name.get_ref(), i as u8);
            self.system.groups.push(GroupSpec {
                name: name.get_ref().clone(),
                count,
                when_down: node.when_down,
                retry_after: node.retry_after.map_or(DEFAULT_RETRY_NS, |t| t.0 as Nanos),
                rebuild: None,
                element: 0,
            });
        }
    }

    /// Allocates `count` instances at each node of a group, for the element defined at `span`.
    fn place(
        &mut self,
        group: Option<u8>,
        count: u32,
        span: Span,
        last: Option<Placement>,
    ) -> Placement {
        let base = last.map_or(0, |last| self.system.instances(last).end);
        let placement = Placement { group, count, base };
        let more = u64::from(count) * u64::from(self.system.nodes(group));
        if u64::from(base) + more <= MAX_INSTANCES {
            return placement;
        }
        let message =
            format!("a system has at most {MAX_INSTANCES} instances of elements of one kind");
        let problem = Problem::new(span, message, "too many with this one");
        self.problems.push(problem);
        Placement {
            group: None,
            count: 1,
            base: 0,
        }
    }

    /// Allocates a number for an element to which time is attributed.
    fn element_number(&mut self, name: String) -> u16 {
        self.system.elements.push(name);
        u16::try_from(self.system.elements.len() - 1).expect("elements are few")
    }

    fn stations(&mut self) {
        for (name, station) in &self.file.station {
            let service = self.service(name, station);
            let discipline = match station.queue {
                QueueKind::Fifo => Discipline::Fifo,
                QueueKind::ProcessorSharing => Discipline::ProcessorSharing,
                QueueKind::Delay => Discipline::Delay,
            };
            if let (Discipline::Delay, Some(servers)) = (discipline, &station.servers) {
                self.problem(
                    servers,
                    "a delay has no servers: each operation has its own",
                    "leave this out",
                );
            }
            let servers = station
                .servers
                .as_ref()
                .map_or(1, |n| self.positive(n, "the number of servers"));
            let like = Like {
                span: self.span(name),
                element: self.element_number(name.get_ref().clone()),
                node: &station.node,
                count: &station.count,
                choose: &station.choose,
                when_down: station.when_down,
            };
            let number = self.station(name.get_ref().clone(), &like, servers, discipline, service);
            self.name(name, Element::Station(number));
        }
        for (name, link) in &self.file.link {
            self.link(name, link);
        }
    }

    fn station(
        &mut self,
        name: String,
        like: &Like<'_>,
        servers: u32,
        discipline: Discipline,
        service: Service,
    ) -> u16 {
        let group = self.group(like.node.as_ref());
        let count = like
            .count
            .as_ref()
            .map_or(1, |n| self.count(n, "the number of stations"));
        if let (1, Some(choose)) = (count, like.choose) {
            self.problem(
                choose,
                "there is one to choose from: give a `count` too",
                "leave this out",
            );
        }
        let last = self.system.stations.last().map(|s| s.placement);
        let placement = self.place(group, count, like.span, last);
        let of_group = group.map(|g| self.system.groups[g as usize].when_down);
        let number = self.system.stations.len() as u16;
        self.system.stations.push(StationSpec {
            name,
            placement,
            choose: like
                .choose
                .as_ref()
                .map_or(Choice::RoundRobin, |c| *c.get_ref()),
            client_divisor: self.system.nodes(group),
            servers,
            discipline,
            service,
            when_down: like.when_down.or(of_group).unwrap_or_default(),
            element: like.element,
        });
        number
    }

    /// Creates the stations of a link: in each direction a station for transmission if the link has a bandwidth, and a
    /// station for latency if the latency is above 0.
    fn link(&mut self, name: &'a Spanned<String>, link: &'a Link) {
        if link.latency.is_none() && link.bandwidth.is_none() {
            self.problem(
                name,
                "a link needs `latency`, `bandwidth` or both",
                "this link takes no time",
            );
        }
        let latency = link.latency.as_ref().map_or(0.0, |t| t.get_ref().value.0);
        let jitter = link.jitter.as_ref().map_or(0.0, |t| t.get_ref().value.0);
        if let (true, Some(at)) = (jitter > latency, &link.jitter) {
            self.problem(at, "the jitter must not exceed the latency", "this time");
        }
        let like = Like {
            span: self.span(name),
            element: self.element_number(name.get_ref().clone()),
            node: &link.node,
            count: &link.count,
            choose: &link.choose,
            when_down: link.when_down,
        };
        let header = link
            .header
            .as_ref()
            .map_or(DEFAULT_HEADER_BYTES, |size| size.get_ref().0 as u32);
        let direction = |resolver: &mut Self, suffix: &str| {
            let full = |what: &str| format!("{}.{suffix}{what}", name.get_ref());
            let transmission = link.bandwidth.as_ref().map(|rate| {
                let service = Service {
                    time: ServiceTime::Constant(0.0),
                    per_byte: 1e9 / rate.get_ref().value.0,
                };
                resolver.station(full(""), &like, 1, Discipline::Fifo, service)
            });
            let latency = (latency > 0.0).then(|| {
                let time = match jitter {
                    0.0 => ServiceTime::Constant(latency),
                    _ => ServiceTime::Uniform {
                        low: latency - jitter,
                        high: latency + jitter,
                    },
                };
                resolver.station(
                    full(" latency"),
                    &like,
                    1,
                    Discipline::Delay,
                    Service {
                        time,
                        per_byte: 0.0,
                    },
                )
            });
            Element::Link {
                transmission,
                latency,
                header,
            }
        };
        let request = direction(self, "request");
        let reply = direction(self, "reply");
        self.name(name, request);
        self.links.insert(name.get_ref(), [request, reply]);
    }

    fn limits(&mut self) {
        for (name, limit) in &self.file.limit {
            let group = self.group(limit.node.as_ref());
            let in_flight = self.positive(&limit.in_flight, "operations in flight");
            let last = self.system.limits.last().map(|l| l.placement);
            let placement = self.place(group, 1, self.span(name), last);
            let number = self.system.limits.len() as u16;
            let name_text = name.get_ref().clone();
            self.system.limits.push(LimitSpec {
                name: name_text,
                placement,
                in_flight,
                element: 0,
            });
            self.name(name, Element::Limit(number));
        }
        for (i, name) in self.file.tokens.keys().enumerate() {
            self.system.tokens.push(name.get_ref().clone());
            self.name(name, Element::Tokens(i as u16));
        }
        self.elements();
    }

    /// Allocates element numbers for groups, buffers and limits.
    fn elements(&mut self) {
        let System {
            elements,
            groups,
            buffers,
            limits,
            ..
        } = &mut self.system;
        let mut element = |name: String| {
            elements.push(name);
            elements.len() as u16 - 1
        };
        groups
            .iter_mut()
            .for_each(|g| g.element = element(format!("{} down", g.name)));
        buffers
            .iter_mut()
            .for_each(|b| b.element = element(b.name.clone()));
        limits
            .iter_mut()
            .for_each(|l| l.element = element(l.name.clone()));
    }
}

impl Element {
    /// Stations of a direction of a link, transmission before latency; empty for other elements.
    fn stations(self) -> impl Iterator<Item = u16> {
        let (transmission, latency) = match self {
            Self::Link {
                transmission,
                latency,
                ..
            } => (transmission, latency),
            _ => (None, None),
        };
        transmission.into_iter().chain(latency)
    }
}

/// Placement keys that stations and links have in common.
struct Like<'a> {
    /// Position of the station's or link's name in the text.
    span: Span,
    element: u16,
    node: &'a Option<Spanned<String>>,
    count: &'a Option<Spanned<u32>>,
    choose: &'a Option<Spanned<Choice>>,
    when_down: Option<WhenDown>,
}
