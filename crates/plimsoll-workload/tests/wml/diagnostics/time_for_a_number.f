set $pause=250us
define fileset name=files,path=/data,entries=10ms,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=$pause
    flowop delay name=d,value=15ms
  }
}
run 30s
