define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
foreach $v0 in 1 {
foreach $v1 in 1 {
foreach $v2 in 1 {
foreach $v3 in 1 {
foreach $v4 in 1 {
foreach $v5 in 1 {
foreach $v6 in 1 {
foreach $v7 in 1 {
foreach $v8 in 1 {
foreach $v9 in 1 {
foreach $v10 in 1 {
foreach $v11 in 1 {
foreach $v12 in 1 {
foreach $v13 in 1 {
foreach $v14 in 1 {
foreach $v15 in 1 {
foreach $v16 in 1 {
foreach $v17 in 1 {
foreach $v18 in 1 {
foreach $v19 in 1 {
foreach $v20 in 1 {
foreach $v21 in 1 {
foreach $v22 in 1 {
foreach $v23 in 1 {
foreach $v24 in 1 {
foreach $v25 in 1 {
foreach $v26 in 1 {
foreach $v27 in 1 {
foreach $v28 in 1 {
foreach $v29 in 1 {
foreach $v30 in 1 {
foreach $v31 in 1 {
foreach $v32 in 1 {
foreach $v33 in 1 {
foreach $v34 in 1 {
foreach $v35 in 1 {
foreach $v36 in 1 {
foreach $v37 in 1 {
foreach $v38 in 1 {
foreach $v39 in 1 {
run 1
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
}
