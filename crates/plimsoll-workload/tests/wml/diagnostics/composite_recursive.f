define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define flowop name=a {
  flowop b name=b1
}
define flowop name=b {
  flowop a name=a1
}
define process name=p {
  thread name=t {
    flowop a name=x
  }
}
