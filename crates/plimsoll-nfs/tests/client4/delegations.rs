//! Delegations and their callbacks.

use super::*;

/// A delegation that is recalled before the reply that grants it is returned at once.
#[test]
fn a_recall_may_overtake_the_open() {
    let server = scripted(Script {
        delegate: true,
        recall: true,
        ..Script::default()
    });
    let with = With {
        minor: 0,
        ..DELEGATING
    };
    run(&server, with, async |client, told| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        until(client, || server.count(Op::DelegReturn) == 1).await;
        assert_eq!(server.known().called_back, [Status::Ok]);
        assert_eq!(told.count(Event::Granted), 1);
        assert_eq!(told.count(Event::Recalled), 1);
        // The returned delegation serves no operation.
        let again = open(client, &owner, share::READ).await.unwrap();
        assert_eq!(server.count(Op::Open), 2);
        client.close(&file).await.unwrap();
        client.close(&again).await.unwrap();
    });
}

/// A delegation that the server grants although the OPEN wants none is returned.
#[test]
fn delegations_of_reopened_files_go_back() {
    let server = Scripted::default();
    run(&server, With { minor: 0, ..PLAIN }, async |client, _| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        server.start_anew();
        server.known().script.delegate = true;
        // A 4.0 server reports the loss of the client in the reply to an operation on state.
        server.known().script.fail = [(Op::GetAttr, vec![Status::StaleClientId])].into();
        size(client).await.unwrap();
        until(client, || server.count(Op::DelegReturn) == 1).await;
        client.close(&file).await.unwrap();
    });
}

/// A delegation that the server has lost with the client is not returned: the refusal of its old stateid would look
/// like another loss.
#[test]
fn a_delegation_that_is_lost_with_the_client_does_not_go_back() {
    let server = delegating();
    server.known().script.fail = [(Op::DelegReturn, vec![Status::StaleStateId])].into();
    run(&server, With { minor: 0, ..PLAIN }, async |client, told| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        server.start_anew();
        server.known().script.delegate = false;
        until(client, || told.count(Event::Recovered) == 1).await;
        client.close(&file).await.unwrap();
        assert_eq!(told.calls_of(Call::DelegReturn), 1);
        assert_eq!(told.count(Event::Returned), 0);
        assert_eq!(server.count(Op::SetClientId), 2);
    });
}

/// A lock needs an open at the server, so a file with a delegation is opened before the first lock.
#[test]
fn a_delegated_file_is_opened_for_its_locks() {
    let server = delegating();
    run(&server, DELEGATING, async |client, told| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        client.close(&file).await.unwrap();
        let file = open(client, &owner, share::READ).await.unwrap();
        assert_eq!(server.count(Op::Open), 1);
        assert_eq!(told.count(Event::Used), 1);
        client.lock_and_unlock(&file, 0, 10).await.unwrap();
        assert_eq!(server.count(Op::Open), 2);
        assert_eq!((server.count(Op::Lock), server.count(Op::LockU)), (1, 1));
        client.close(&file).await.unwrap();
        assert_eq!(server.count(Op::Close), 2);
    });
}

/// A revoked delegation serves no further operation, and the client opens the files that the delegation served at the
/// server.
#[test]
fn a_delegation_may_be_taken_away() {
    let server = delegating();
    run(&server, DELEGATING, async |client, _| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        client.close(&file).await.unwrap();
        let file = open(client, &owner, share::READ).await.unwrap();
        assert_eq!(server.count(Op::Open), 1);
        let before = file.state().unwrap();
        let taken = NfsError::Status(Some(Op::Read), Status::DelegRevoked);
        let mut patience = RetryState::default();
        let known_by = file.known_by();
        let again = client.wait_to_repeat(&file, known_by, taken, &mut patience);
        again.await.unwrap();
        assert_eq!(server.count(Op::Open), 2);
        assert_ne!(file.state().unwrap().other, before.other);
        // A repeated report of the same error does nothing, because the file has another stateid. An error of the new
        // open counts as another retry.
        let again = client.wait_to_repeat(&file, known_by, taken, &mut patience);
        again.await.unwrap();
        assert_eq!(server.count(Op::Open), 2);
        server.known().script.delegate = false;
        for opens in 3..=5 {
            let again = client.wait_to_repeat(&file, file.known_by(), taken, &mut patience);
            again.await.unwrap();
            assert_eq!(server.count(Op::Open), opens);
        }
        // The number of retries is limited.
        let last = client.wait_to_repeat(&file, file.known_by(), taken, &mut patience);
        assert_eq!(last.await, Err(taken));
        client.close(&file).await.unwrap();
        let file = open(client, &owner, share::READ).await.unwrap();
        assert_eq!((server.count(Op::Open), server.count(Op::Close)), (6, 2));
        client.close(&file).await.unwrap();
    });
}

/// After a change by the client, the attributes that came with a delegation are not used, except the type.
#[test]
fn attributes_of_a_delegation_are_those_before_a_change() {
    let server = delegating();
    run(&server, DELEGATING, async |client, _| {
        let owner = client.owner(FifoMutex::default());
        let first = open(client, &owner, share::READ).await.unwrap();
        let again = async || {
            let opened = client.open(&owner, (dir(), b"f"), share::READ, None);
            let (file, attributes) = opened.await.unwrap();
            client.close(&file).await.unwrap();
            (attributes.kind, attributes.size)
        };
        let kind = Some(FileType::Regular);
        assert_eq!(again().await, (kind, Some(5)));
        client.changes(&first);
        assert_eq!(again().await, (kind, None));
        assert_eq!(server.count(Op::Open), 1);
    });
}

/// The client makes few calls to bind a connection for callbacks to a server that refuses the connection.
#[test]
fn the_back_channel_is_requested_repeatedly() {
    let server = scripted(Script {
        status: sequence_status::CALLBACK_PATH_DOWN,
        fail: [(Op::BindConnToSession, vec![Status::Inval; 1000])].into(),
        ..Script::default()
    });
    run(&server, DELEGATING, async |client, _| {
        for _ in 0..200 {
            size(client).await.unwrap();
        }
        let asked = server.count(Op::BindConnToSession);
        assert!((1..10).contains(&asked), "{asked}");
    });
}
