define fileset name=files,entries=10,dirwidth=5
