define fileset name=files,path=/data,entrys=10,dirwidth=5
