//! Calls of every procedure to the server in memory.

use super::*;

/// Every procedure has the effect that the RFC specifies, as the server's tree shows.
#[test]
fn all_procedures() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| every_procedure(c, root).await);
    let called: Vec<Proc> = on.told.outcomes.borrow().iter().map(|o| o.0).collect();
    for proc in &Proc::ALL[1..] {
        assert!(called.contains(proc), "{proc} was not called");
        let here = called.iter().filter(|p| *p == proc).count() as u64;
        assert_eq!(server.calls(*proc), here, "{proc}");
    }
    assert_eq!(on.told.sent_again.get() + on.told.connected_again.get(), 0);
}

async fn every_procedure(c: &Client, root: Handle) {
    let set = Setting {
        mode: Some(0o640),
        ..Setting::NOTHING
    };
    let file = made(c, root, "f", CreateHow::Guarded(set)).await.unwrap();
    let again = made(c, root, "f", CreateHow::Guarded(set)).await;
    assert_eq!(again, Err(NfsError::Status(Status::Exist)));
    assert_eq!(
        made(c, root, "f", CreateHow::Unchecked(set)).await,
        Ok(file)
    );
    let once = made(c, root, "x", CreateHow::Exclusive(*b"12345678"))
        .await
        .unwrap();
    assert_eq!(
        made(c, root, "x", CreateHow::Exclusive(*b"12345678")).await,
        Ok(once)
    );
    let other = made(c, root, "x", CreateHow::Exclusive(*b"87654321")).await;
    assert_eq!(other, Err(NfsError::Status(Status::Exist)));

    data(c, file).await;
    names(c, root, file).await;
    listings(c, root).await;

    let stat = c.call::<FsStat, _>(&root, |s| s).await.unwrap();
    assert_eq!(stat.total_bytes, 64 << 20);
    assert!(stat.free_bytes < stat.total_bytes);
    let info = c.call::<FsInfo, _>(&root, |i| i).await.unwrap();
    assert_eq!((info.read_max, info.write_max), (1 << 20, 1 << 20));
    let conf = c.call::<PathConf, _>(&root, |p| p).await.unwrap();
    assert_eq!(conf.longest_name, 255);
}

async fn data(c: &Client, file: Handle) {
    let write = |offset, bytes: &'static [u8], stable| WriteArgs {
        file,
        offset,
        count: bytes.len() as u32,
        stable,
        data: Name(bytes),
    };
    let unstable = write(3, b"hello", Stable::Unstable);
    let w = c.call::<Write, _>(&unstable, |w| w).await.unwrap();
    assert_eq!((w.count, w.committed), (5, Stable::Unstable));
    let args = CommitArgs {
        file,
        offset: 0,
        count: 0,
    };
    let verifier = c.call::<Commit, _>(&args, |d| d.verifier).await.unwrap();
    assert_eq!(verifier, w.verifier);
    let args = ReadArgs {
        file,
        offset: 1,
        count: 5,
    };
    let read = c
        .call::<Read, _>(&args, |r| (r.data.0.to_vec(), r.count, r.eof))
        .await;
    assert_eq!(read.unwrap(), (b"\0\0hel".to_vec(), 5, false));
    let args = SetAttrArgs {
        object: file,
        set: Setting {
            size: Some(4),
            mode: Some(0o600),
            ..Setting::NOTHING
        },
        guard: None,
    };
    c.call::<SetAttr, _>(&args, |_| ()).await.unwrap();
    let a = c.call::<GetAttr, _>(&file, |a| a).await.unwrap();
    assert_eq!((a.kind, a.size, a.mode), (FileType::Regular, 4, 0o600));
    let guarded = SetAttrArgs {
        guard: Some(Time {
            seconds: 1,
            nanoseconds: 1,
        }),
        ..args
    };
    let refused = c.call::<SetAttr, _>(&guarded, |_| ()).await;
    assert_eq!(refused, Err(NfsError::Status(Status::NotSync)));
    let args = AccessArgs {
        object: file,
        wanted: access::READ | access::MODIFY,
    };
    let granted = c.call::<Access, _>(&args, |a| a.granted).await.unwrap();
    assert_eq!(granted, access::READ | access::MODIFY);
}

async fn names(c: &Client, root: Handle, file: Handle) {
    let set = Setting::NOTHING;
    let args = MkDirArgs {
        at: at(root, "d"),
        set,
    };
    let dir = c
        .call::<MkDir, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    let args = SymLinkArgs {
        at: at(dir, "s"),
        set,
        path: Name(b"../f"),
    };
    let link = c
        .call::<SymLink, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    let path = c.call::<ReadLink, _>(&link, |l| l.path.0.to_vec()).await;
    assert_eq!(path.unwrap(), b"../f");
    let args = MkNodArgs {
        at: at(dir, "p"),
        what: SpecialNode::Pipe(FileType::Fifo, set),
    };
    c.call::<MkNod, _>(&args, |_| ()).await.unwrap();
    let args = LinkArgs {
        file,
        at: at(dir, "l"),
    };
    c.call::<Link, _>(&args, |_| ()).await.unwrap();
    let a = c.call::<GetAttr, _>(&file, |a| a.links).await;
    assert_eq!(a, Ok(2));
    let args = RenameArgs {
        from: at(dir, "l"),
        to: at(root, "moved"),
    };
    c.call::<Rename, _>(&args, |_| ()).await.unwrap();
    let found = c.call::<Lookup, _>(&at(root, "moved"), |f| f.object).await;
    assert_eq!(found, Ok(file));
    let full = c.call::<RmDir, _>(&at(root, "d"), |_| ()).await;
    assert_eq!(full, Err(NfsError::Status(Status::NotEmpty)));
    for name in ["s", "p"] {
        c.call::<Remove, _>(&at(dir, name), |_| ()).await.unwrap();
    }
    c.call::<RmDir, _>(&at(root, "d"), |_| ()).await.unwrap();
    let stale = c.call::<GetAttr, _>(&dir, |_| ()).await;
    assert_eq!(stale, Err(NfsError::Status(Status::Stale)));
    c.call::<Remove, _>(&at(root, "moved"), |_| ())
        .await
        .unwrap();
}

/// Listings in many small parts return each name once while names are removed.
async fn listings(c: &Client, root: Handle) {
    let args = MkDirArgs {
        at: at(root, "many"),
        set: Setting::NOTHING,
    };
    let dir = c
        .call::<MkDir, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    for i in 0..100 {
        made(
            c,
            dir,
            &format!("{i:03}"),
            CreateHow::Guarded(Setting::NOTHING),
        )
        .await
        .unwrap();
    }
    let mut seen: Vec<String> = Vec::new();
    let mut args = ReadDirArgs {
        dir,
        cookie: 0,
        verifier: [0; 8],
        count: 512,
    };
    loop {
        let (names, cookie, eof) = c
            .call::<ReadDir, _>(&args, |l| {
                let names = l
                    .entries
                    .iter()
                    .map(|e| String::from_utf8_lossy(e.name.0).into());
                let names: Vec<String> = names.collect();
                (names, l.entries.last().map(|e| e.cookie), l.eof)
            })
            .await
            .unwrap();
        seen.extend(names);
        if eof {
            break;
        }
        args.cookie = cookie.unwrap();
        // The last listed name is removed; the listing still returns the names after it.
        let last = seen.last().unwrap().clone();
        if last.len() == 3 {
            c.call::<Remove, _>(&at(dir, &last), |_| ()).await.unwrap();
        }
    }
    let want = (0..100).map(|i| format!("{i:03}"));
    let want: Vec<String> = [".".into(), "..".into()].into_iter().chain(want).collect();
    assert_eq!(seen, want);
    let plus = ReadDirPlusArgs {
        dir,
        cookie: 0,
        verifier: [0; 8],
        dir_count: 8192,
        max_count: 65536,
    };
    let all = c.call::<ReadDirPlus, _>(&plus, |l| {
        assert!(l.eof);
        assert!(
            l.entries
                .iter()
                .all(|e| e.handle.is_some() && e.attributes.is_some())
        );
        l.entries.len()
    });
    assert!((70..102).contains(&all.await.unwrap()));
    let tight = ReadDirArgs { count: 100, ..args };
    let tight = ReadDirArgs { cookie: 0, ..tight };
    let small = c.call::<ReadDir, _>(&tight, |_| ()).await;
    assert_eq!(small, Err(NfsError::Status(Status::TooSmall)));
}
