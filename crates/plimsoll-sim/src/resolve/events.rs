//! Events: changes of a system and the affected nodes and stations.

use super::{Element, Resolver};
use crate::system::{Change, Subject};
use crate::system_event::SystemEvent;
use plimsoll_diagnostics::{Problem, Span};
use plimsoll_measure::Nanos;

impl Resolver<'_> {
    /// Checks the events of the system file, and resolves the names of the affected elements.
    pub(super) fn events(&mut self) {
        for event in &self.file.event {
            let given = [
                (&event.down, "down"),
                (&event.up, "up"),
                (&event.slow, "slow"),
            ];
            let mut given = given
                .into_iter()
                .filter_map(|(subject, what)| Some((subject.as_ref()?, what)));
            let (Some((subject, what)), None) = (given.next(), given.next()) else {
                self.problem(
                    &event.at,
                    "an event has one of `down`, `up` and `slow`",
                    "this event",
                );
                continue;
            };
            let change = match (what, &event.factor) {
                ("down", None) => Change::Down,
                ("up", None) => Change::Up,
                ("slow", Some(factor))
                    if *factor.get_ref() > 0.0 && factor.get_ref().is_finite() =>
                {
                    Change::Slow(*factor.get_ref())
                }
                ("slow", Some(factor)) => {
                    self.problem(factor, "a factor must be above 0", "this number");
                    continue;
                }
                ("slow", None) => {
                    self.problem(
                        subject,
                        "say how many times slower: factor = 10",
                        "this event",
                    );
                    continue;
                }
                (_, Some(factor)) => {
                    self.problem(factor, "a `factor` needs `slow`", "leave this out");
                    continue;
                }
                _ => unreachable!("the three kinds of events are matched"),
            };
            let (name, span) = (subject.get_ref().as_str(), self.span(subject));
            self.happens(event.at.get_ref().0 as Nanos, change, name, span);
        }
        self.system.changes.sort_by_key(|(at, ..)| *at);
    }

    /// Resolves additional events. Returns the text that their spans refer to, with a line per event.
    pub(super) fn more_events(&mut self, events: &[SystemEvent]) -> String {
        let mut lines = String::new();
        for event in events {
            let span = event.span(1, lines.len());
            self.happens(event.at, event.change, event.what(), span);
            lines.push_str(&format!("{event}\n"));
        }
        // The sort is stable: simultaneous events keep the order in which they were given.
        self.system.changes.sort_by_key(|(at, ..)| *at);
        self.system.events.sort_by_key(|(at, _)| *at);
        lines
    }

    /// Adds a change of the element `name`.
    fn happens(&mut self, at: Nanos, change: Change, name: &str, span: Span) {
        let action = match change {
            Change::Down => format!("down {name}"),
            Change::Up => format!("up {name}"),
            Change::Slow(factor) => format!("slow {name} {factor}"),
        };
        self.system.events.push((at, action));
        for subject in self.subjects(name, span) {
            self.system.changes.push((at, subject, change));
        }
    }

    /// Resolves the subject of an event, such as `edge.3`, `edge`, `disk.0` or `wan`.
    fn subjects(&mut self, text: &str, span: Span) -> Vec<Subject> {
        let (name, number) = match text.split_once('.') {
            Some((name, number)) => match number.parse::<u32>() {
                Ok(number) => (name, Some(number)),
                Err(_) => {
                    self.problems.push(Problem::new(
                        span,
                        format!("`{number}` is not a number"),
                        "expected a name, or a name, a dot and a number",
                    ));
                    return vec![];
                }
            },
            None => (text, None),
        };
        let too_large = |count: u32| format!("the numbers of `{name}` are 0 to {}", count - 1);
        if let Some(&group) = self.groups.get(name) {
            let count = self.system.groups[group as usize].count;
            if number.is_some_and(|n| n >= count) {
                self.problems
                    .push(Problem::new(span, too_large(count), "this number"));
                return vec![];
            }
            let nodes = number.map_or(0..count, |n| n..n + 1);
            return nodes.map(|node| Subject::Node { group, node }).collect();
        }
        let stations: Vec<u16> = match (self.names.get(name), self.links.get(name)) {
            (_, Some(directions)) => directions.iter().flat_map(|d| d.stations()).collect(),
            (Some((Element::Station(station), _)), None) => vec![*station],
            _ => {
                let stations = self.file.station.keys().map(|name| name.get_ref().as_str());
                let known: Vec<_> = self
                    .groups
                    .keys()
                    .chain(self.links.keys())
                    .copied()
                    .chain(stations)
                    .collect();
                let problem = Problem::new(
                    span,
                    format!("`{name}` is not a node, station or link"),
                    "not one of their names",
                );
                self.problems.push(problem.suggest(name, known));
                return vec![];
            }
        };
        let mut subjects = vec![];
        for station in stations {
            let placement = self.system.stations[station as usize].placement;
            let count = self.system.instances(placement).len() as u32;
            if number.is_some_and(|n| n >= count) {
                self.problems
                    .push(Problem::new(span, too_large(count), "this number"));
                return vec![];
            }
            subjects.push(Subject::Station {
                station,
                instance: number,
            });
        }
        subjects
    }
}
