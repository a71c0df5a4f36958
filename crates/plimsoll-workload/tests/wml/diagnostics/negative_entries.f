define fileset name=files,path=/data,entries=-5,dirwidth=5
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
