# The files of a 140 GiB TPC-C database: users read from all, writers and a log follow.

set $dir=/tmp         # directory the files go to
set $eventrate=0      # transactions a second in all; 0 lets them run freely
set $iosize=2k        # size of a database block (bytes)
set $nshadows=200     # number of shadow (user) processes
set $ndbwriters=10    # number of database writers
set $runtime=30       # length of the run (seconds)
set $usermode=20000   # memory stores a shadow does after every read (think time)
set $memperthread=1m  # buffer of each thread (bytes)

eventgen rate=$eventrate

# The names tell the tables of TPC-C; one that begins with i is an index. All sizes are Filebench's.
define file name=aux.df,      path=$dir, size=251m,   prealloc, reuse, paralloc
define file name=control_001, path=$dir, size=2m,     prealloc, reuse, paralloc
define file name=cust_0_0,    path=$dir, size=6704m,  prealloc, reuse, paralloc
define file name=cust_0_1,    path=$dir, size=6704m,  prealloc, reuse, paralloc
define file name=cust_0_2,    path=$dir, size=6704m,  prealloc, reuse, paralloc
define file name=cust_0_3,    path=$dir, size=6704m,  prealloc, reuse, paralloc
define file name=dist_0_0,    path=$dir, size=31m,    prealloc, reuse, paralloc
define file name=hist_0_0,    path=$dir, size=3002m,  prealloc, reuse, paralloc
define file name=icust1_0_0,  path=$dir, size=4943m,  prealloc, reuse, paralloc
define file name=icust2_0_0,  path=$dir, size=4943m,  prealloc, reuse, paralloc
define file name=idist_0_0,   path=$dir, size=11m,    prealloc, reuse, paralloc
define file name=iitem_0_0,   path=$dir, size=11m,    prealloc, reuse, paralloc
define file name=iordr2_0_0,  path=$dir, size=1651m,  prealloc, reuse, paralloc
define file name=istok_0_0,   path=$dir, size=2262m,  prealloc, reuse, paralloc
define file name=item_0_0,    path=$dir, size=21m,    prealloc, reuse, paralloc
define file name=iware_0_0,   path=$dir, size=11m,    prealloc, reuse, paralloc
define file name=nord_0_0,    path=$dir, size=561m,   prealloc, reuse, paralloc
define file name=ordr_0_0,    path=$dir, size=44301m, prealloc, reuse, paralloc
define file name=roll1,       path=$dir, size=2001m,  prealloc, reuse, paralloc
define file name=sp_0,        path=$dir, size=1001m,  prealloc, reuse, paralloc
define file name=stok_0_0,    path=$dir, size=8052m,  prealloc, reuse, paralloc
define file name=stok_0_1,    path=$dir, size=8052m,  prealloc, reuse, paralloc
define file name=stok_0_2,    path=$dir, size=8052m,  prealloc, reuse, paralloc
define file name=stok_0_3,    path=$dir, size=8052m,  prealloc, reuse, paralloc
define file name=stok_0_4,    path=$dir, size=8052m,  prealloc, reuse, paralloc
define file name=system_1,    path=$dir, size=401m,   prealloc, reuse, paralloc
define file name=temp_0_0,    path=$dir, size=4943m,  prealloc, reuse, paralloc
define file name=temp_0_1,    path=$dir, size=4943m,  prealloc, reuse, paralloc
define file name=ware_0_0,    path=$dir, size=11m,    prealloc, reuse, paralloc
define file name=log_1_1,     path=$dir, size=1021m,  prealloc, reuse, paralloc

# A descriptor slot keeps the file it was first opened on, so every file has a slot of its own.
define flowop name=dbwrite, $file, $slot {
  flowop aiowrite name=dbaiowrite, filename=$file, fd=$slot, iosize=$iosize, workingset=10g,
                  random, dsync, directio, iters=10
}

define flowop name=dbread, $file, $slot {
  flowop read name=shadowread, filename=$file, fd=$slot, iosize=$iosize, workingset=10g,
              random, dsync, directio
  flowop hog name=shadowhog, value=$usermode
}

define process name=dbwr, instances=$ndbwriters {
  thread name=dbwr, memsize=$memperthread {
    flowop dbwrite name=dbwrite-aux.df,      $file=aux.df,      $slot=1
    flowop dbwrite name=dbwrite-control_001, $file=control_001, $slot=2
    flowop dbwrite name=dbwrite-cust_0_0,    $file=cust_0_0,    $slot=3
    flowop dbwrite name=dbwrite-cust_0_1,    $file=cust_0_1,    $slot=4
    flowop dbwrite name=dbwrite-cust_0_2,    $file=cust_0_2,    $slot=5
    flowop dbwrite name=dbwrite-cust_0_3,    $file=cust_0_3,    $slot=6
    flowop dbwrite name=dbwrite-dist_0_0,    $file=dist_0_0,    $slot=7
    flowop dbwrite name=dbwrite-hist_0_0,    $file=hist_0_0,    $slot=8
    flowop dbwrite name=dbwrite-icust1_0_0,  $file=icust1_0_0,  $slot=9
    flowop dbwrite name=dbwrite-icust2_0_0,  $file=icust2_0_0,  $slot=10
    flowop dbwrite name=dbwrite-idist_0_0,   $file=idist_0_0,   $slot=11
    flowop dbwrite name=dbwrite-iitem_0_0,   $file=iitem_0_0,   $slot=12
    flowop dbwrite name=dbwrite-iordr2_0_0,  $file=iordr2_0_0,  $slot=13
    flowop dbwrite name=dbwrite-istok_0_0,   $file=istok_0_0,   $slot=14
    flowop dbwrite name=dbwrite-item_0_0,    $file=item_0_0,    $slot=15
    flowop dbwrite name=dbwrite-iware_0_0,   $file=iware_0_0,   $slot=16
    flowop dbwrite name=dbwrite-nord_0_0,    $file=nord_0_0,    $slot=17
    flowop dbwrite name=dbwrite-ordr_0_0,    $file=ordr_0_0,    $slot=18
    flowop dbwrite name=dbwrite-roll1,       $file=roll1,       $slot=19
    flowop dbwrite name=dbwrite-sp_0,        $file=sp_0,        $slot=20
    flowop dbwrite name=dbwrite-stok_0_0,    $file=stok_0_0,    $slot=21
    flowop dbwrite name=dbwrite-stok_0_1,    $file=stok_0_1,    $slot=22
    flowop dbwrite name=dbwrite-stok_0_2,    $file=stok_0_2,    $slot=23
    flowop dbwrite name=dbwrite-stok_0_3,    $file=stok_0_3,    $slot=24
    flowop dbwrite name=dbwrite-stok_0_4,    $file=stok_0_4,    $slot=25
    flowop dbwrite name=dbwrite-system_1,    $file=system_1,    $slot=26
    flowop dbwrite name=dbwrite-temp_0_0,    $file=temp_0_0,    $slot=27
    flowop dbwrite name=dbwrite-temp_0_1,    $file=temp_0_1,    $slot=28
    flowop dbwrite name=dbwrite-ware_0_0,    $file=ware_0_0,    $slot=29
    flowop hog name=dbwr-hog, value=10000
    flowop semblock name=dbwr-block, value=100, highwater=10000
    flowop aiowait name=dbwr-aiowait
  }
}

define process name=lgwr, instances=1 {
  thread name=lgwr, memsize=$memperthread {
    flowop write name=lg-write, filename=log_1_1, iosize=256k, workingset=1g,
                 random, dsync, directio
    flowop semblock name=lg-block, value=320, highwater=1000
  }
}

define process name=shadow, instances=$nshadows {
  thread name=shadow, memsize=$memperthread {
    flowop dbread name=dbread-aux.df,      $file=aux.df,      $slot=1
    flowop dbread name=dbread-control_001, $file=control_001, $slot=2
    flowop dbread name=dbread-cust_0_0,    $file=cust_0_0,    $slot=3
    flowop dbread name=dbread-cust_0_1,    $file=cust_0_1,    $slot=4
    flowop dbread name=dbread-cust_0_2,    $file=cust_0_2,    $slot=5
    flowop dbread name=dbread-cust_0_3,    $file=cust_0_3,    $slot=6
    flowop dbread name=dbread-dist_0_0,    $file=dist_0_0,    $slot=7
    flowop dbread name=dbread-hist_0_0,    $file=hist_0_0,    $slot=8
    flowop dbread name=dbread-icust1_0_0,  $file=icust1_0_0,  $slot=9
    flowop dbread name=dbread-icust2_0_0,  $file=icust2_0_0,  $slot=10
    flowop dbread name=dbread-idist_0_0,   $file=idist_0_0,   $slot=11
    flowop dbread name=dbread-iitem_0_0,   $file=iitem_0_0,   $slot=12
    flowop dbread name=dbread-iordr2_0_0,  $file=iordr2_0_0,  $slot=13
    flowop dbread name=dbread-istok_0_0,   $file=istok_0_0,   $slot=14
    flowop dbread name=dbread-item_0_0,    $file=item_0_0,    $slot=15
    flowop dbread name=dbread-iware_0_0,   $file=iware_0_0,   $slot=16
    flowop dbread name=dbread-nord_0_0,    $file=nord_0_0,    $slot=17
    flowop dbread name=dbread-ordr_0_0,    $file=ordr_0_0,    $slot=18
    flowop dbread name=dbread-roll1,       $file=roll1,       $slot=19
    flowop dbread name=dbread-sp_0,        $file=sp_0,        $slot=20
    flowop dbread name=dbread-stok_0_0,    $file=stok_0_0,    $slot=21
    flowop dbread name=dbread-stok_0_1,    $file=stok_0_1,    $slot=22
    flowop dbread name=dbread-stok_0_2,    $file=stok_0_2,    $slot=23
    flowop dbread name=dbread-stok_0_3,    $file=stok_0_3,    $slot=24
    flowop dbread name=dbread-stok_0_4,    $file=stok_0_4,    $slot=25
    flowop dbread name=dbread-system_1,    $file=system_1,    $slot=26
    flowop dbread name=dbread-temp_0_0,    $file=temp_0_0,    $slot=27
    flowop dbread name=dbread-temp_0_1,    $file=temp_0_1,    $slot=28
    flowop dbread name=dbread-ware_0_0,    $file=ware_0_0,    $slot=29
    flowop dbread name=dbread-log_1_1,     $file=log_1_1,     $slot=30
    flowop sempost name=shadow-post-lg, value=1, target=lg-block, blocking
    flowop sempost name=shadow-post-dbwr, value=1, target=dbwr-block, blocking
    flowop eventlimit name=random-rate
  }
}

# Filebench's file has the parameter but no run statement.
run $runtime
