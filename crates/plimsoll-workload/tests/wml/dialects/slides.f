# A database's log: synchronous appends, in the style of the first releases.
# $logdir - where the log lies
# $writers - log writers

set $logdir="/export/$(hostname)"
set $writers=2
set $runtime=30

define file name=redo,path=$logdir,size=64m,prealloc,reuse

define process name=log,instances=1
{
  thread name=writer,memsize=1m,instances=$writers,useism
  {
    flowop write name=log-write,filename=redo,iosize=16k,dsync
    flowop hog name=log-hog,value=5000
  }
}

stats directory /var/tmp/results
create files
create processes
foreach $load in light, heavy
{
  echo "load $load at $(date)"
  stats clear
  sleep $runtime
  stats snap
  stats dump "log.$load.out"
}
shutdown processes
vars
quit
