//! What a node says of itself, made of its settings and of the ports that it really got.

use std::sync::Arc;

use crate::config::Settings;
use crate::protocol::ids::{Address, BadName, Incarnation, Member, NodeId};

/// The member that a node is.
pub(super) fn from_settings(
    settings: &Settings,
    node: NodeId,
    incarnation: Incarnation,
    (grpc_port, http_port): (u16, u16),
) -> Result<Member, BadName> {
    let advertised = settings.advertise.as_str();
    let (host, port) = advertised.rsplit_once(':').unwrap_or((advertised, "0"));
    // Port 0 stands for the one that it listens on, which is known only now.
    let address = if port == "0" { Address::new(&format!("{host}:{grpc_port}"))? } else { settings.advertise.clone() };
    Ok(Member {
        node,
        incarnation,
        address,
        http: Address::new(&format!("{host}:{http_port}"))?,
        version: Arc::from(env!("CARGO_PKG_VERSION")),
        concurrency: settings.concurrency,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    fn member(advertise: &str) -> Member {
        let flags = vec![("node_id", "a".to_owned()), ("advertise", advertise.to_owned())];
        let settings = load(&Sources { flags, ..Sources::default() }).expect("all allowed").settings;
        from_settings(&settings, settings.node_id.clone(), Incarnation(5), (17, 18)).expect("a good address")
    }

    #[test]
    fn an_advertised_port_of_0_is_the_one_that_it_listens_on() {
        let member = member("[::1]:0");
        assert_eq!((member.address.as_str(), member.http.as_str()), ("[::1]:17", "[::1]:18"));
    }

    #[test]
    fn an_advertised_port_stays_since_others_may_come_through_a_forwarding() {
        assert_eq!(member("outside:99").address.as_str(), "outside:99");
    }
}
