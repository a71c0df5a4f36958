# Deleting files from a populated tree, up to a number of operations.

set $dir=/tmp          # directory the files go to
set $count=1000        # operations after which the run ends
set $filesize=16k      # size of a file (bytes)
set $nfiles=5000       # number of files there at the start
set $meandirwidth=100  # mean entries per directory
set $nthreads=16       # number of deleting threads
set $eventrate=0       # operations a second in all; 0 lifts the limit

eventgen rate=$eventrate

set mode quit firstdone

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=100, paralloc

define process name=filedelete, instances=1 {
  thread name=filedeletethread, memsize=10m, instances=$nthreads {
    flowop deletefile name=deletefile1, filesetname=bigfileset
    flowop opslimit name=limit
    flowop finishoncount name=finish, value=$count
  }
}
