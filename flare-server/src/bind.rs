//! Takes an address; gives a listener, or says what is in the way and what to do about it.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::failure::Failure;

pub(crate) async fn bind(addr: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(addr).await.map_err(|error| {
        let what = format!("cannot listen on {addr}");
        match help(error.kind(), addr) {
            Some(help) => Failure::new(format!("{what}: {help}")),
            None => Failure::because(what, error),
        }
    })
}

fn help(kind: io::ErrorKind, addr: SocketAddr) -> Option<String> {
    let other = "choose another with --addr or http.server.addr";
    Some(match kind {
        io::ErrorKind::AddrInUse => {
            format!("the port is in use by another process: end that one, or {other}")
        }
        io::ErrorKind::PermissionDenied => format!(
            "this user may not use port {}: {other} (1024 and above need no rights), or give the \
             program CAP_NET_BIND_SERVICE",
            addr.port()
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "this machine has no address {}: {other} (0.0.0.0 or [::] means all it has)",
            addr.ip()
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_to_do() {
        let addr = "127.0.0.1:80".parse().unwrap();
        for (kind, says) in [
            (io::ErrorKind::AddrInUse, "in use"),
            (io::ErrorKind::PermissionDenied, "may not use port 80"),
            (io::ErrorKind::AddrNotAvailable, "no address 127.0.0.1"),
        ] {
            let help = help(kind, addr).unwrap();
            assert!(help.contains(says) && help.contains("--addr"), "{help}");
        }
        assert_eq!(help(io::ErrorKind::Other, addr), None);
    }
}
