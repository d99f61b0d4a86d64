# The number of the pod is known here only.
for file in config proxy; do
    sed "s|POD_NUM|${POD_NAME##*-}|g" "/etc/tiflash/${file}_templ.toml" >"/data0/$file.toml"
done
