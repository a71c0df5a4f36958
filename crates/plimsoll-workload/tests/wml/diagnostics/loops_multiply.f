define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
foreach $a in 1,2,3,4,5,6,7,8,9,10 {
foreach $b in 1,2,3,4,5,6,7,8,9,10 {
foreach $c in 1,2,3,4,5,6,7,8,9,10 {
foreach $d in 1,2,3,4,5,6,7,8,9,10 {
foreach $e in 1,2,3,4,5,6,7,8,9,10 {
  sleep 1
} } } } }
