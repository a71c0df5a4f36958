#
# CDDL HEADER START
#
# Terms of a licence.
#
# CDDL HEADER END
#
# Copyright 2009 Somebody.  All rights reserved.
#
# Clients of a network file server at a fixed rate, in the style of release 1.4.

set $dir=/export/home
set $cached=false
set $eventrate=20
set $nfiles=500
set $total=$nfiles * $eventrate
set mode noUsageStats

eventgen rate = $eventrate

define randvar name=$iosize, type=tabular, min=1k, round=1k, randtable =
{{ 0,   1k,    7k},
 {08,   9k,   15k},
 {92,  17k,   23k}
}

define randvar name=$pick, type=gamma, min=0, gamma=100

define fileset name=exports,path=$dir,size=$iosize,entries=$total,dirwidth=20,prealloc=60, paralloc,cached=$cached

define flowop name=replace, $set
{
  flowop openfile name=open-old,filesetname=$set,indexed=$pick,fd=1
  flowop readwholefile name=read-old,iosize=$iosize,fd=1
  flowop createfile name=open-new,filesetname=$set,indexed=$pick,fd=2
  flowop writewholefile name=write-new,fd=2,iosize=$iosize,srcfd=1
  flowop closefile name=close-old,fd=1
  flowop closefile name=close-new,fd=2
  flowop deletefile name=delete-old,fd=1
}

define process name=client,instances=1
{
  thread name=user,memsize=10m,instances=4
  {
    flowop replace name=replace1, iters=6, $set=exports
    flowop statfile name=stat1,filesetname=exports,indexed=$pick
    flowop eventlimit name=rate
  }
}

echo  "Replace Version 1.0 personality successfully loaded"
usage "Usage: set \$dir=<dir>        defaults to $dir"
usage "       run runtime (e.g. run 60)"
