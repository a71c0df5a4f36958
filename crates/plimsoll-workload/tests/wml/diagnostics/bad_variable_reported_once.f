# --set nfiles=abc
set $dir=/tmp
set $nfiles=10
set $iosize=big
define fileset name=tree,path=$dir,entries=$nfiles,dirwidth=20
define process name=p {
  thread name=t,memsize=1m {
    flowop openfile name=o,filesetname=tree,fd=1
    flowop read name=r,fd=1,iosize=$iosize
    flowop write name=w,fd=1,iosize=$iosize
    flowop closefile name=c,fd=1
  }
}
run 1
