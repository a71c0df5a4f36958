eventgen rate=
define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
