//! `floodline cluster`: the cluster once, as the asked node sees it.

use super::exit::{Exit, Outcome};
use super::face::{Face, Output};
use super::follow::json_line;
use super::table::{Side, aligned};
use crate::client::Client;
use crate::protocol::ids::NodeId;
use crate::protocol::view::{ClusterView, NodeView};
use crate::wire::json;

/// Arguments of `floodline cluster`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) async fn run(_: Args, face: &Face) -> Outcome {
    let seen = Client::connect(face.nodes()?).await?.cluster().await?;
    match face.output {
        Output::Text => face.say(&format!("{}\n\n{}", headline(&seen.cluster, &seen.view), table(&seen.view)))?,
        Output::Json => face.say(&json_line(&json::Cluster::from(&seen))?)?,
    }
    Ok(Exit::Done)
}

fn headline(name: &str, view: &ClusterView) -> String {
    let leadership = match &view.leadership {
        Some(leadership) => format!(
            "term {} led by {}, {} of {} jobs admitted",
            leadership.term, leadership.leader, view.admitted, view.cap
        ),
        None => "no coordinator at present".to_owned(),
    };
    let waiting = if view.queued == 0 { String::new() } else { format!(", {} waiting here", view.queued) };
    format!("{name}: {leadership}{waiting}")
}

fn table(view: &ClusterView) -> String {
    let header = ["NODE", "PART", "JAC", "RUNNING", "ADDRESS", "VERSION", "LINKS"].map(str::to_owned).to_vec();
    let leader = view.leadership.as_ref().map(|leadership| &leadership.leader);
    let rows: Vec<Vec<String>> =
        std::iter::once(header).chain(view.nodes.iter().map(|node| row(node, leader))).collect();
    let (left, right) = (Side::Left, Side::Right);
    aligned(&[left, left, right, right, left, left, left], &rows)
}

fn row(node: &NodeView, leader: Option<&NodeId>) -> Vec<String> {
    let part = match (node.alive, leader == Some(&node.member.node)) {
        (false, _) => "gone",
        (true, true) => "coordinator",
        (true, false) => "worker",
    };
    vec![
        node.member.node.to_string(),
        part.to_owned(),
        node.jac.to_string(),
        node.running.to_string(),
        node.member.address.to_string(),
        node.member.version.to_string(),
        node.links.iter().map(NodeId::as_str).collect::<Vec<&str>>().join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Address, Incarnation, Jac, Leadership, Member, Term};

    fn name(text: &str) -> NodeId {
        NodeId::new(text).expect("a good name")
    }

    fn node(text: &str, alive: bool, jac: u64, links: &[&str]) -> NodeView {
        let address = Address::new(&format!("{text}:7400")).expect("an address");
        let member = Member {
            node: name(text),
            incarnation: Incarnation(1),
            http: address.clone(),
            address,
            version: "0.1.0".into(),
            concurrency: 1,
        };
        NodeView { member, alive, jac: Jac(jac), links: links.iter().map(|link| name(link)).collect(), running: 2 }
    }

    #[test]
    fn the_table_shows_who_leads_and_who_is_gone() {
        let leadership = Leadership { term: Term(3), leader: name("w2"), incarnation: Incarnation(1), jac: Jac(5) };
        let view = ClusterView {
            leadership: Some(leadership),
            admitted: 2,
            cap: 5,
            queued: 1,
            nodes: vec![node("w1", true, 12, &["w2", "w3"]), node("w2", true, 7, &["w1"]), node("w3", false, 0, &[])],
        };
        assert_eq!(headline("floodline", &view), "floodline: term 3 led by w2, 2 of 5 jobs admitted, 1 waiting here");
        let expected = "\
NODE  PART         JAC  RUNNING  ADDRESS  VERSION  LINKS
w1    worker        12        2  w1:7400  0.1.0    w2 w3
w2    coordinator    7        2  w2:7400  0.1.0    w1
w3    gone           0        2  w3:7400  0.1.0";
        assert_eq!(table(&view), expected);
    }
}
